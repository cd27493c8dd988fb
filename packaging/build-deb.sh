#!/bin/sh
# SPDX-License-Identifier: MIT
# build-deb.sh VERSION FOLDER [TAR]: builds Debian packages of the commit, or of the tar file, into FOLDER. DEB_REVISION (default: 1) makes a
# package newer than another of the same version. DEBEMAIL and DEBFULLNAME: the maintainer. Equal sources give equal packages. Tests do not
# run (DEB_BUILD_OPTIONS=nocheck) unless DEB_BUILD_OPTIONS is set; `make check` runs them.
set -eu
version=$1 folder=$2 revision=${DEB_REVISION:-1}
export LC_ALL=C.UTF-8 TZ=UTC DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-nocheck}"

for tool in dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null || {
        echo "make deb: there is no $tool: apt-get install dpkg-dev debhelper" >&2
        exit 1
    }
done
source=$folder/berth-$version
rm -rf "$source" && mkdir -p "$source"
if [ $# -gt 2 ]; then
    tar -x -C "$source" -f "$3"
else
    git archive HEAD | tar -x -C "$source"
fi
cp -r "$source/packaging/debian" "$source/debian"
sed -i "1s/([^)]*)/($version-$revision)/" "$source/debian/changelog"
# Users of the package write to whoever builds it.
if [ -n "${DEBEMAIL:-}" ]; then
    sed -i "s|^Maintainer: .*|Maintainer: ${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>|" "$source/debian/control"
    sed -i "s|^ -- .* <[^>]*>| -- ${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>|" "$source/debian/changelog"
fi
(
    cd "$source"
    umask 022
    dpkg-buildpackage --no-sign --build=binary >"$folder/build.log" 2>&1
) || {
    tail -n 30 "$folder/build.log" >&2
    exit 1
}
rm -rf "$source"
ls "$folder/berth_$version-$revision"_*.deb "$folder/berth-web_$version-$revision"_*.deb
