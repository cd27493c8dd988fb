#!/bin/sh
# SPDX-License-Identifier: MIT
# build-rpm.sh VERSION FOLDER: an rpm package of what is committed, into FOLDER. Works with Debian's rpm, too: dependencies of the
# build are then not looked for, as rpm knows nothing of them there. Equal sources give equal packages.
set -eu
version=$1 folder=$2
export LC_ALL=C.UTF-8 TZ=UTC

command -v rpmbuild >/dev/null || {
    echo "make rpm: there is no rpmbuild: apt-get install rpm, or dnf install rpm-build" >&2
    exit 1
}
top=$folder/tree
rm -rf "$top" && mkdir -p "$top/SOURCES"
git archive --prefix="berth-$version/" HEAD | gzip -n >"$top/SOURCES/berth-$version.tar.gz"
git show HEAD:units/berth.sysusers >"$top/SOURCES/berth.sysusers"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

set -- --define "_topdir $top" --define "berth_version $version" --define "_buildhost berth.invalid" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1"
if [ "$(rpm --eval '%{?_unitdir}')" = "" ]; then
    set -- --load="$PWD/packaging/systemd.macros" --nodeps "$@"
fi
rpmbuild -bb "$@" packaging/berth.spec >"$folder/build.log" 2>&1 || {
    tail -n 30 "$folder/build.log" >&2
    exit 1
}
mv "$top"/RPMS/*/*.rpm "$folder/"
rm -rf "$top"
ls "$folder"/berth-"$version"-*.rpm
