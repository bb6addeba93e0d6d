# SPDX-License-Identifier: Apache-2.0
"""The demo's shop speaks the languages of the waiting page."""
from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from tellerline import TOP

SHOP = TOP / "deploy" / "demo" / "shop"
LANGUAGES = sorted(path.stem for path in (TOP / "worker" / "page" / "languages").glob("*.yaml"))
WORDS = json.loads((SHOP / "words.json").read_text())


@pytest.fixture(scope="module")
def shop():
    spec = importlib.util.spec_from_file_location("demo_shop", SHOP / "shop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look
    spec.loader.exec_module(module)
    return module


def test_each_language_has_each_text():
    assert sorted(WORDS) == LANGUAGES
    for code, words in WORDS.items():
        assert words.keys() == WORDS["en"].keys(), code
        concerts = [text for concert in words["concerts"] for text in concert]
        assert len(concerts) == 6 and all(concerts) and all(words.values()), code
        assert code == "en" or words["lead"] != WORDS["en"]["lead"], code
        assert words["price"].format(45000).count("45,000") == 1, code


@pytest.mark.parametrize("accepted, language", [
    ("ko-KR,ko;q=0.9,en;q=0.8", "ko"), ("zh-TW,zh;q=0.9", "zh-Hant"), ("zh-Hant-HK", "zh-Hant"), ("zh-CN", "zh-Hans"),
    ("xx, pt-BR;q=0.5", "pt"), ("iw", "he"), ("in-ID", "id"), ("", "en"), ("*", "en"), ("xx", "en")])
def test_the_browsers_language(shop, accepted, language):
    assert shop.language_of({}, accepted) == language
    assert shop.language_of({"lang": ["ar"]}, accepted) == "ar"


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages(shop, language):
    words = WORDS[language]
    assert words["concerts"][1][0] in shop.concert_list(language).replace("&#x27;", "'")
    page = shop.concert_page(language, "2", "B3")
    assert 'value="B3" checked' in page and words["buy"] in page and "38,000" in page
    assert words["done"] in shop.thanks_page(language, "H-1")
