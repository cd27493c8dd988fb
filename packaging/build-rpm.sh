#!/bin/sh
# SPDX-License-Identifier: MIT
# build-rpm.sh VERSION FOLDER [TAR]: builds an rpm package of the commit, or of the tar file, into FOLDER. RPM_RELEASE (default: 1) makes a
# package newer than another of the same version. Works with Debian's rpm, too, without checking build dependencies, which rpm does not
# know there. Equal sources give equal packages.
set -eu
version=$1 folder=$2
export LC_ALL=C.UTF-8 TZ=UTC

command -v rpmbuild >/dev/null || {
    echo "make rpm: there is no rpmbuild: apt-get install rpm, or dnf install rpm-build" >&2
    exit 1
}
top=$folder/tree
source=$top/berth-$version
rm -rf "$top" && mkdir -p "$top/SOURCES" "$source"
if [ $# -gt 2 ]; then
    tar -x -C "$source" -f "$3"
else
    git archive HEAD | tar -x -C "$source"
fi
# All files have the time of the commit.
SOURCE_DATE_EPOCH=$(stat -c %Y "$source/NEWS.md")
export SOURCE_DATE_EPOCH
tar -c -C "$top" --sort=name --owner=0 --group=0 --numeric-owner "berth-$version" | gzip -n >"$top/SOURCES/berth-$version.tar.gz"
cp -p "$source/units/berth.sysusers" "$top/SOURCES/"

set -- --define "_topdir $top" --define "berth_version $version" --define "berth_release ${RPM_RELEASE:-1}" \
    --define "_buildhost berth.invalid" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1"
if [ "$(rpm --eval '%{?_unitdir}')" = "" ]; then
    set -- --load="$source/packaging/systemd.macros" --nodeps "$@"
fi
rpmbuild -bb "$@" "$source/packaging/berth.spec" >"$folder/build.log" 2>&1 || {
    tail -n 30 "$folder/build.log" >&2
    exit 1
}
mv "$top"/RPMS/*/*.rpm "$folder/"
rm -rf "$top"
ls "$folder/berth-web-$version-${RPM_RELEASE:-1}".*.rpm "$folder/berth-$version-${RPM_RELEASE:-1}".*.rpm
