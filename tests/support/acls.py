"""NFSv4 access control lists."""

from __future__ import annotations

PLAIN_ACL = bytes.fromhex(
    "00000003"
    "00000000" "00000000" "001601bf" "00000006" "4f574e4552400000"  # A::rwaxtTcCy:OWNER@
    "00000000" "00000040" "001200a9" "00000006" "47524f5550400000"  # A:g:rxtcy:GROUP@
    "00000000" "00000000" "001200a9" "00000009" "45564552594f4e4540000000"  # A::rxtcy:EVERYONE@
)  # fmt: skip
