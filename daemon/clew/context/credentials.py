"""Credentials that are known by how they look: keys and tokens of providers, private keys. Pure.

The formats are those that their issuers document, or print into their tokens so that scanners find them (autumn 2026).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9])"
_DIGIT_AHEAD = r"(?=[A-Za-z_-]{0,64}[0-9])"
# A token that was wrapped goes on in a line of its own that is no hash.
_WRAPPED = r"(?:\\?\r?\n[ \t>]{0,8}(?=[A-Za-z_-]{0,40}[0-9])(?=[0-9a-f_-]{0,40}[A-Zg-z])[A-Za-z0-9_+/=-]{8,512}(?=[ \t]*(?:\r?\n|\Z)))?"


@dataclass(frozen=True, slots=True)
class Format:
    """hint: stands in every text in which the pattern finds something; only there it is tried."""

    kind: str
    hint: str
    pattern: re.Pattern[str]


def _format(kind: str, hint: str, pattern: str, *, whole: bool = False) -> Format:
    """whole: the pattern says itself where a token begins and that it does not go on."""
    return Format(kind, hint, re.compile(pattern if whole else f"{_START}{pattern}{_WRAPPED}"))


# Every quantifier is bounded, possessive or followed by nothing that could fail, so that a hostile text costs linear time.
_KEY_LINES = r"(?:(?:\s|\\n|\\r|[>|#*]|[A-Za-z][A-Za-z-]{0,30}: [^\n]{0,200}\n)*+[A-Za-z0-9+/=]{16,}+)*+"
_PRIVATE = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"

FORMATS: tuple[Format, ...] = (
    _format("private key", "PRIVATE KEY", rf"-----BEGIN {_PRIVATE}(?:(?:[^-]|-(?!----))*+-----END {_PRIVATE}|{_KEY_LINES})", whole=True),
    _format("private key", "Private-Lines: ", r"Private-Lines: [0-9]{1,4}(?:\s{1,4}[A-Za-z0-9+/=]{16,}+)+", whole=True),
    _format("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _format("api key", "sk-", r"sk-(?:ant-|proj-|svcacct-|admin-|or-v1-)[A-Za-z0-9_-]{20,}"),
    _format("api key", "sk-", rf"sk-{_DIGIT_AHEAD}(?:[a-z]{{1,12}}-)?[A-Za-z0-9_]{{20,}}"),
    _format("api key", "sess-", r"sess-[A-Za-z0-9]{30,}"),
    _format("api key", "_live_", r"(?:sk|rk|pk)_(?:org_)?live_[A-Za-z0-9]{16,}"),
    _format("api key", "_test_", r"(?:sk|rk|pk)_(?:org_)?test_[A-Za-z0-9]{16,}"),
    _format("api key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _format("api key", "A", rf"{_START}(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[0-9A-Z]{{16}}{_END}", whole=True),
    _format("api key", "ABSK", r"ABSK[A-Za-z0-9+/=]{32,}"),
    _format("api key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=_-]{16,}"),
    _format("api key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _format("api key", "AQ.", r"AQ\.[A-Za-z0-9_-]{40,}"),
    _format("api key", "gsk_", r"gsk_[A-Za-z0-9]{24,}"),
    _format("api key", "xai-", r"xai-[A-Za-z0-9]{24,}"),
    _format("api key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{24,}"),
    _format("api key", "pplx-", r"pplx-[A-Za-z0-9]{24,}"),
    _format("api key", "tvly-", r"tvly-[A-Za-z0-9_-]{24,}"),
    _format("api key", "fw_", rf"fw_{_DIGIT_AHEAD}[A-Za-z0-9]{{22,}}"),
    _format("api key", "pcsk_", r"pcsk_[A-Za-z0-9_]{32,}"),
    _format("api key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _format("api key", "SK", rf"{_START}SK[0-9a-f]{{32}}{_END}", whole=True),
    _format("api key", "key-", rf"{_START}key-[0-9a-f]{{32}}{_END}", whole=True),
    _format("api key", "-us", rf"{_START}[0-9a-f]{{32}}-us[0-9]{{1,2}}{_END}", whole=True),
    _format("api key", "NRAK-", r"NRAK-[A-Z0-9]{24,}"),
    _format("api key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{32,}"),
    _format("api key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    _format("token", "gh", r"gh[pousr]_[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{8,}){0,2}"),
    _format("token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _format("token", "gl", r"gl(?:pat|dt|rt|rtr|ptt|cbt|agent|oas|soat|ft|imt|ffct|wt)-[A-Za-z0-9_=-]{16,}(?:\.[A-Za-z0-9_-]{2,}){0,2}"),
    _format("token", "GR1348941", r"GR1348941[A-Za-z0-9_-]{20,}"),
    _format("token", "xox", r"(?:xoxe\.)?xox[abcdeoprs]-[A-Za-z0-9%+/=-]{10,}"),
    _format("token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{16,}"),
    _format("token", "hf_", r"hf_[A-Za-z0-9]{24,}"),
    _format("token", "npm_", r"npm_[A-Za-z0-9]{24,}"),
    _format("token", "pypi-", r"pypi-[A-Za-z0-9_-]{40,}"),
    _format("token", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    _format("token", "r8_", r"r8_[A-Za-z0-9]{32,}"),
    _format("token", "dckr_", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    _format("token", "_v1_", r"do[opr]_v1_[a-f0-9]{24,}"),
    _format("token", "shp", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{24,}"),
    _format("token", "sq0", r"sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}"),
    _format("token", "EAA", r"EAA[A-Z][A-Za-z0-9_-]{56,}"),
    _format("token", "secret_", r"secret_[A-Za-z0-9]{43}"),
    _format("token", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    _format("token", "dapi", rf"{_START}dapi[a-f0-9]{{32}}(?:-[0-9])?{_END}", whole=True),
    _format("token", "hv", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _format("token", "AT", r"AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    _format("token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,}"),
    _format("token", "gl", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    _format("token", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _format("token", "pul-", r"pul-[a-f0-9]{40}"),
    _format("token", "figd_", r"figd_[A-Za-z0-9_-]{36,}"),
    _format("token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_]{40,}"),
    _format("token", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}"),
    _format("token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{60,}"),
    _format("token", "sb", r"sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,})"),
    _format("token", "AKCp", r"AKCp[A-Za-z0-9]{60,}"),
    _format("token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _format("token", "tk_", r"tk_[a-z0-9]{29}(?![A-Za-z0-9_])"),
    _format("token", "syt_", r"syt_[A-Za-z0-9+/=]{1,64}_[A-Za-z0-9]{12,}_[A-Za-z0-9]{4,}"),
    _format("token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    _format("token", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{24,}"),
    _format("token", "1//0", r"1//0[A-Za-z0-9_-]{40,}"),
    _format("token", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    _format("token", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}"),
    _format("token", ":A", r"[0-9]{7,12}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])", whole=True),
    _format("token", ".", r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    _format("webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}", whole=True),
    _format("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,}", whole=True),
    _format("password hash", "$", r"\$(?:2[abxy]|5|6|y|7|argon2(?:id|i|d))\$[A-Za-z0-9=,$./+]{19,}[A-Za-z0-9=/+]", whole=True),
    _format(
        "recovery phrase",
        "phrase",
        r"(?i:(?<=seed phrase)|(?<=recovery phrase)|(?<=mnemonic phrase))[^\S\n]?[:=]\s{0,4}(?:[a-z]{3,8}[\s,]{1,3}){11,23}[a-z]{3,8}\b",
        whole=True,
    ),
)


def without_credentials(text: str) -> str:
    """`text` with `[redacted: kind]` in the place of every credential of a known format."""
    for each in FORMATS:
        if each.hint in text:
            text = each.pattern.sub(f"[redacted: {each.kind}]", text)
    return text
