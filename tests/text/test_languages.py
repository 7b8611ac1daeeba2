"""Which languages there are, what their names are, and what is told where a package is missing."""

import sys

import pytest

from elmo_cli.errors import ConfigError
from elmo_cli.text.tokenizer import SpacyTokenizer


def tokens(tokenizer: SpacyTokenizer, text: str) -> list[str]:
    return [text[start:end] for start, end in tokenizer.spans([text])[0]]


def test_an_iso_639_3_code_names_the_same_language() -> None:
    assert tokens(SpacyTokenizer("deu"), "z.B. so") == tokens(SpacyTokenizer("de"), "z.B. so") == ["z.B.", "so"]


@pytest.mark.parametrize(
    ("language", "fix"),
    [
        ("german", "did you mean de?"),
        ("Englisch", "did you mean en?"),
        ("EN", "did you mean en?"),
        ("pt_BR", "did you mean pt?"),
        ("", "name a code such as en, de or xx (any)"),
        ("???", "name a code such as en, de or xx (any)"),
        ("punctuation", "name a code such as en, de or xx (any)"),
    ],
)
def test_an_unknown_language_is_an_error(language: str, fix: str) -> None:
    tokenizer = SpacyTokenizer(language)
    with pytest.raises(ConfigError) as error:
        tokenizer.spans(["text"])
    assert str(error.value) == f"spaCy has no language {language!r}\n  fix: {fix}"


@pytest.mark.parametrize(
    ("language", "package", "fix"),
    [
        ("ja", "sudachipy", "pip install sudachipy sudachidict_core"),
        ("ko", "natto", "pip install natto-py, and install mecab-ko and mecab-ko-dic"),
        ("th", "pythainlp.tokenize", "pip install pythainlp"),
        ("vi", "pyvi", "pip install pyvi"),
        ("zh-jieba", "jieba", "pip install 'elmo-cli[zh]'"),
    ],
)
def test_a_missing_package_of_a_language_is_an_error(
    monkeypatch: pytest.MonkeyPatch, language: str, package: str, fix: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as error:
        SpacyTokenizer(language).spans(["text"])
    assert str(error.value) == f"the tokenizer for {language!r} needs a package that is missing\n  fix: {fix}"


def test_chinese_is_cut_into_words_by_jieba(capfd: pytest.CaptureFixture[str]) -> None:
    text = "我来到北京清华大学。 It's 8"
    assert tokens(SpacyTokenizer("zh-jieba"), text) == [
        *("我", "来到", "北京", "清华大学", "。"),
        *("It", "'", "s", "8"),
    ]
    assert capfd.readouterr() == ("", "")  # jieba would tell of its dictionary
