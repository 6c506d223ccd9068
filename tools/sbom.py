"""sbom.py VERSION CREATED FILE…: a software bill of materials of a release, as SPDX 2.3 in JSON, on standard output: headlight, the other projects
that its files hold parts of (the rows of THIRD_PARTY.md that end up in something), at the versions that are installed here, and the files with
their SHA-256. CREATED is seconds since 1970."""

import datetime
import hashlib
import json
import os
import subprocess
import sys

# Project, Debian package, licence, and how headlight takes it in.
PARTS = [
    ("Highway", "libhwy-dev", "Apache-2.0 OR BSD-3-Clause", "CONTAINS"),
    ("nlohmann-json", "nlohmann-json3-dev", "MIT", "CONTAINS"),
    ("utf8proc", "libutf8proc-dev", "MIT AND Unicode-DFS-2016", "STATIC_LINK"),
    ("CLI11", "libcli11-dev", "BSD-3-Clause", "CONTAINS"),
    ("nanobind", None, "BSD-3-Clause", "CONTAINS"),
]


def debian_version(package):
    return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package],
                          check=True, capture_output=True, text=True).stdout


def package(name, version, licence):
    return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version, "licenseDeclared": licence,
            "licenseConcluded": licence, "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False}


def main():
    version, created, *paths = sys.argv[1:]
    files = []
    for path in paths:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        name = os.path.basename(path)
        files.append({"SPDXID": f"SPDXRef-file-{len(files) + 1}", "fileName": f"./{name}",
                      "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
                      "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION"})
    wheels = any(path.endswith(".whl") for path in paths)
    parts = [part for part in PARTS if part[1] is not None or wheels]
    created = datetime.datetime.fromtimestamp(int(created), datetime.timezone.utc)
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-headlight")]
    relationships += [("SPDXRef-headlight", how, f"SPDXRef-{name}") for name, _, _, how in parts]
    relationships += [(file["SPDXID"], "GENERATED_FROM", "SPDXRef-headlight") for file in files]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"headlight-{version}",
        "documentNamespace": f"urn:headlight:release:{version}:{created:%Y%m%dT%H%M%SZ}",
        "creationInfo": {"created": f"{created:%Y-%m-%dT%H:%M:%SZ}", "creators": [f"Tool: headlight-tools-release-{version}"]},
        "packages": [package("headlight", version, "Apache-2.0")] +
                    [package(name, debian_version(debian) if debian else "NOASSERTION", licence)
                     for name, debian, licence, _ in parts],
        "files": files,
        "relationships": [{"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}
                          for one, how, other in relationships],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
