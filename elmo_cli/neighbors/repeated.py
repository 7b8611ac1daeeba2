"""Whether what was added to an index was in it already."""

import hashlib
from collections.abc import Collection

from elmo_cli.neighbors.index import Index
from elmo_cli.neighbors.part import Part


def texts_twice(index: Index) -> list[str]:
    """Return the names of the texts of the newest part that an older part has with the same sentences.

    Sentences without a token that is kept are not in an index and not looked at. All is read only where a name is
    there twice.
    """
    newest = index.info.parts[-1]
    older = [
        (number, shared)
        for number, part in enumerate(index.info.parts[:-1])
        if (shared := set(part.sources) & set(newest.sources))
    ]
    if not older:
        return []
    new = _digests(index.parts[-1], set().union(*(shared for _, shared in older)))
    known = [_digests(index.parts[number], shared) for number, shared in older]
    names = dict.fromkeys(newest.sources)
    return [name for name in names if name in new and any(old.get(name) == new[name] for old in known)]


def _digests(part: Part, names: Collection[str]) -> dict[str, str]:
    """Return a sum of the sentences of some texts; a text without sentences has none."""
    sums = {name: hashlib.sha256() for name in names}
    met = set()
    for number in range(part.info.sentences):
        sentence = part.sentence(number)
        if sentence.source in sums:
            met.add(sentence.source)
            sums[sentence.source].update(f"{sentence.line}\t{sentence.text}\n".encode("utf-8", "surrogatepass"))
    return {name: sums[name].hexdigest() for name in met}
