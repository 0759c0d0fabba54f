#!/bin/bash
# Pack a tree as a .deb: debian.sh SOURCE TREE VERSION OUT DEPENDS
set -euo pipefail
source_dir=$1 tree=$2 version=$3 out=$4 depends=$5
architecture=$(dpkg --print-architecture)
umask 022
mkdir "$tree/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@DEPENDS@/$depends/" \
    -e "s/@SIZE@/$(du -sk --apparent-size --exclude=DEBIAN "$tree" | cut -f1)/" \
    "$source_dir/deploy/packages/debian/control.in" > "$tree/DEBIAN/control"
install -m 755 -t "$tree/DEBIAN" "$source_dir"/deploy/packages/debian/{postinst,prerm,postrm}
# For dpkg --verify.
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"
find "$tree/DEBIAN" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zzstd -z6 --build "$tree" "$out/slipway_${version}_$architecture.deb"
rm -rf "$tree/DEBIAN"
