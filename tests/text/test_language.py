"""Every language has one name in this project, however it is written elsewhere."""

from __future__ import annotations

import pytest

from codec_bench.text.language import base_language


@pytest.mark.parametrize(
    ("code", "names"),
    {
        "en": ["en", "EN", "en-US", "en_GB", "eng", "English", " english "],
        "zh": ["zh", "zh-CN", "zh_TW", "zh-Hans", "cmn", "cmn_hans_cn", "Chinese", "Mandarin", "zho"],
        "yue": ["yue", "zh-HK", "zh_hk", "Cantonese", "yue-Hant-HK", "zh-yue", "yue_hant_hk"],
        "ja": ["ja", "jp", "jpn", "Japanese", "ja_jp"],
        "ko": ["ko", "kr", "kor", "ko-KR", "Korean"],
        "de": ["de", "deu", "ger", "German", "de-AT"],
        "no": ["nb", "nn", "no", "Norwegian"],
        "xx": ["xx", "XX-yy"],
    }.items(),
)
def test_every_spelling_has_one_base_code(code, names):
    assert {base_language(name) for name in names} == {code}


def test_a_base_code_stays_what_it_is():
    for code in ("en", "zh", "yue", "ja", "ko", "th", "fil", "he", "no", "pt"):
        assert base_language(base_language(code)) == code
