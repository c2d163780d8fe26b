"""The software bill of materials: which crates the packages contain, in CycloneDX's format."""

import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

import licences
from common import ROOT, epoch, put, version


def build(out: Path) -> Path:
    """Writes ropewalk-VERSION.cdx.json."""
    packages, needs = licences.contained()
    bill = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:generic/ropewalk@{version()}?time={epoch()}"))
    bill.metadata.timestamp = datetime.fromtimestamp(epoch(), UTC)
    ropewalk = Component(name="ropewalk", version=version(), type=ComponentType.APPLICATION, bom_ref="ropewalk")
    ropewalk.licenses.add(LicenseFactory().make_from_string("MIT OR Apache-2.0"))
    bill.metadata.component = ropewalk
    sums = checksums()
    components = {package["id"]: component(package, sums) for package in packages}
    bill.components.update(components.values())
    # Ropewalk's own crates are one component, which needs all of them.
    bill.register_dependency(ropewalk, components.values())
    for identifier, one in components.items():
        bill.register_dependency(one, [components[other] for other in needs[identifier]])
    path = out / f"ropewalk-{version()}.cdx.json"
    put(path, JsonV1Dot6(bill).output_as_string(indent=1) + "\n")
    return path


def component(package: dict, sums: dict[tuple[str, str], str]) -> Component:
    """A crate with its licence and the checksum that the lock file pins."""
    name, number = package["name"], package["version"]
    place = PackageURL("cargo", name=name, version=number)
    found = Component(name=name, version=number, type=ComponentType.LIBRARY, purl=place, bom_ref=str(place))
    found.licenses.add(LicenseFactory().make_from_string(package["license"].replace("/", " OR ")))
    if digest := sums.get((name, number)):
        found.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    return found


def checksums() -> dict[tuple[str, str], str]:
    """The SHA-256 of each crate's archive, from Cargo.lock."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(one["name"], one["version"]): one["checksum"] for one in locked if "checksum" in one}
