"""The languages that spaCy knows how to tokenize without any model to download."""

import difflib
import logging
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elmo_cli.errors import ConfigError

if TYPE_CHECKING:
    from spacy.language import Language

CHINESE_WORDS: Final = "zh-jieba"  # as --lang and a model's config name it

_PACKAGES: Final = {  # what spaCy's message asks for; it gives a command only for Japanese
    "ja": "pip install sudachipy sudachidict_core",
    "ko": "pip install natto-py, and install mecab-ko and mecab-ko-dic",
    "th": "pip install pythainlp",
    "vi": "pip install pyvi",
    CHINESE_WORDS: "pip install 'elmo-cli[zh]'",
}


def blank_pipeline(language: str) -> "Language":
    """Return spaCy's pipeline of a language with nothing but a tokenizer in it.

    Raises:
        ConfigError: spaCy does not know the language, or lacks a package for it.
    """
    import spacy
    from spacy.util import find_matching_language, registry

    codes = _language_codes(Path(spacy.__file__).parent / "lang")
    known = (*codes.values(), CHINESE_WORDS)
    if not (language in known or find_matching_language(language) or language in registry.languages):
        lowered = re.split("[-_]", language.lower())[0]
        near = difflib.get_close_matches(lowered, [*codes, *codes.values()], n=1)
        fix = f"did you mean {codes.get(near[0], near[0])}?" if near else "name a code such as en, de or xx (any)"
        raise ConfigError(f"spaCy has no language {language!r}", fix=fix)
    try:
        return _chinese_words() if language == CHINESE_WORDS else spacy.blank(language)
    except ImportError as error:
        fix = _PACKAGES.get(language, str(error))
        raise ConfigError(f"the tokenizer for {language!r} needs a package that is missing", fix=fix) from error


def _chinese_words() -> "Language":
    """Return spaCy's Chinese with jieba's words, which says nothing on stderr but warnings."""
    import spacy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jieba's own code
        import jieba
    jieba.setLogLevel(logging.WARNING)
    settings = {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": "jieba"}
    return spacy.blank("zh", config={"nlp": {"tokenizer": settings}})


def _language_codes(folder: Path) -> dict[str, str]:
    """Return spaCy's languages, code by lower-case English name, without importing all of them."""
    codes = {}
    for file in folder.glob("*/__init__.py"):
        name = re.search(r'__all__ = \["(\w+)"\]', file.read_text(encoding="utf-8"))
        codes[name[1].lower() if name else file.parent.name] = file.parent.name
    return codes
