# SPDX-License-Identifier: PostgreSQL
"""test_manifests: compose file and Kubernetes manifests fit the entrypoint, the Containerfile and what pgpool serves."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

TOP = Path(__file__).parents[2]
ENTRYPOINT = (TOP / "packaging/container/entrypoint").read_text(encoding="utf-8")
CONTAINERFILE = (TOP / "packaging/container/Containerfile").read_text(encoding="utf-8")
KNOWN = set(re.findall(r"\bPGPOOL_[A-Z_]*[A-Z]\b", ENTRYPOINT))
PROBES = set(re.findall(r'"(/[a-z]+)"', (TOP / "src/process/web/web_route.c").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def objects() -> dict[str, dict]:
    text = (TOP / "packaging/kubernetes/pgpool.yaml").read_text(encoding="utf-8")
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    assert set(found) == {"Secret", "Deployment", "Service", "PodDisruptionBudget"}
    return found


@pytest.fixture(scope="module")
def container(objects) -> dict:
    (one,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return one


def is_known(name: str) -> bool:
    return name in KNOWN or name.removesuffix("_FILE") in KNOWN


def test_environment(objects, container):
    """Every name is one that the entrypoint knows, every secret one that is there."""
    assert all(is_known(e["name"]) for e in container["env"])
    assert not is_known("PGPOOL_NONSENSE")
    keys = {e["valueFrom"]["secretKeyRef"]["key"] for e in container["env"] if "valueFrom" in e}
    assert keys == set(objects["Secret"]["stringData"])


def test_ports_and_probes(objects, container):
    """What is probed is served, on the port that the environment sets; the Service leads to PostgreSQL's."""
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert int(env["PGPOOL_HTTP_PORT"]) == ports["http"] and env["PGPOOL_HTTP_LISTEN_ADDRESSES"] == "*"
    assert f"PGPOOL_PORT:-{ports['postgresql']}" in ENTRYPOINT and f"EXPOSE {ports['postgresql']} " in CONTAINERFILE
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in PROBES and asked["port"] in ports, probe
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert all(p["targetPort"] in ports for p in objects["Service"]["spec"]["ports"])


def test_drain(objects, container):
    """The drain ends before the pod is killed, by a command that pgpool has."""
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    script = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert "pgpool -m smart stop" in script
    assert sum(int(n) for n in re.findall(r"sleep (\d+)", script)) < spec["terminationGracePeriodSeconds"]


def test_rights(objects, container):
    """The user of the image; what is written to is mounted, for the root is read-only."""
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and f"USER {spec['securityContext']['runAsUser']}\n" in CONTAINERFILE
    assert container["securityContext"]["readOnlyRootFilesystem"]
    mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
    assert set(re.findall(r":-(/[\w/]+)\}", ENTRYPOINT)) <= set(mounts)
    assert set(mounts.values()) == {v["name"] for v in spec["volumes"]}


def test_nothing_of_the_packages_is_in_tmp():
    """The unit has a /tmp of its own, where nobody finds sockets; in the common one anybody could have made them."""
    sample = (TOP / "pgpool.conf.sample").read_text(encoding="utf-8")
    in_tmp = set(re.findall(r"^#(\w+) = '/tmp'", sample, re.M))
    assert {"pcp_socket_dir", "wd_ipc_socket_dir"} <= in_tmp
    head = (TOP / "packaging/pgpool.conf.head").read_text(encoding="utf-8")
    assert in_tmp <= set(re.findall(r"^(\w+) = '/(?:run|var/lib)/pgpool'", head, re.M))
    assert in_tmp <= set(re.findall(r'^ +text (\w+) "\$(?:run|work)"', ENTRYPOINT, re.M))
    assert "PrivateTmp=yes" in (TOP / "packaging/pgpool.service").read_text(encoding="utf-8")


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_the_unit_by_systemds_own_judge(tmp_path):
    """Nothing in it is unknown, and what it leaves open is little: 9.6 of 10 is a unit that takes nothing away."""
    text = (TOP / "packaging/pgpool.service").read_text(encoding="utf-8")
    unit = tmp_path / "pgpool.service"
    unit.write_text(text.replace("/usr/bin/pgpool", "/bin/true").replace("man:pgpool(1) ", ""), encoding="utf-8")
    said = subprocess.run([ANALYZE, "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    about = [line for line in said.stderr.splitlines() if "pgpool.service" in line]
    assert not about, said.stderr
    judged = subprocess.run([ANALYZE, "security", "--offline=true", "--threshold=25", unit], capture_output=True, text=True, check=False, timeout=60)
    if "unrecognized option" in judged.stderr:
        pytest.skip("an old systemd-analyze")
    assert judged.returncode == 0, (judged.stdout[-300:], judged.stderr)
    assert "exposure level for pgpool.service" in judged.stdout


# A service that is not root may gain nothing with any of these, whatever NoNewPrivileges= says (systemd.exec(5)).
IMPLY_NO_NEW_PRIVILEGES = set(
    """LockPersonality MemoryDenyWriteExecute PrivateDevices ProtectClock ProtectHostname ProtectKernelLogs
    ProtectKernelModules ProtectKernelTunables RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID
    SystemCallArchitectures SystemCallFilter SystemCallLog DynamicUser RestrictFileSystems""".split()
)


def test_the_unit_says_all_that_sudo_needs():
    """Its lines for scripts that call sudo take back every setting that forbids it, and no other."""
    text = (TOP / "packaging/pgpool.service").read_text(encoding="utf-8")
    in_force = set(re.findall(r"^(\w+)=", text, re.M))
    taken_back = dict(re.findall(r"^#   (\w+)=(.*)$", text[text.index("# Scripts that call sudo"):], re.M))
    assert {"SystemCallFilter", "PrivateDevices"} <= in_force & IMPLY_NO_NEW_PRIVILEGES
    assert set(taken_back) == in_force & IMPLY_NO_NEW_PRIVILEGES | {"NoNewPrivileges", "CapabilityBoundingSet"}
    assert set(taken_back.values()) <= {"", "no", "~"} and taken_back["CapabilityBoundingSet"] == "~"


def test_the_log_folder_stays_with_its_group():
    """The package gives it to adm; a LogsDirectory of the unit takes it for the group of the service."""
    text = (TOP / "packaging/pgpool.service").read_text(encoding="utf-8")
    assert "-g adm" in (TOP / "debian/pgpool.postinst").read_text(encoding="utf-8")
    assert "\nReadWritePaths=-/var/log/pgpool\n" in text and not re.search(r"^LogsDirectory", text, re.M)


def test_the_manual_has_every_name():
    """What the entrypoint reads stands in the manual, and nothing else does."""
    text = (TOP / "doc/user/packages.md").read_text(encoding="utf-8")
    assert KNOWN == set(re.findall(r"\bPGPOOL_[A-Z_]+\b", text)) - {"PGPOOL_POSTGRES_PASSWORD_FILE"}


def test_labels(objects):
    """All of them are about the same pods, and the budget leaves one of them."""
    deployment = objects["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    budget = objects["PodDisruptionBudget"]["spec"]
    for selected in (deployment["selector"]["matchLabels"], objects["Service"]["spec"]["selector"], budget["selector"]["matchLabels"]):
        assert selected.items() <= labels.items()
    assert budget["minAvailable"] < deployment["replicas"]


def test_compose():
    """Three servers, and a pgpool that knows each by its name and port."""
    text = (TOP / "packaging/container/compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    pool = services.pop("pgpool")
    assert all(is_known(name) for name in pool["environment"])
    nodes = re.findall(r"\d+:([\w-]+):5432", pool["environment"]["PGPOOL_BACKEND_NODES"])
    assert sorted(nodes) == sorted(services) and len(nodes) == 3
    for service in [pool, *services.values()]:
        assert set(service.get("depends_on", {})) <= set(services)
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in services[needed]
    (port,) = pool["ports"]
    assert port.endswith(":5432")
    build = TOP / "packaging/container" / pool["build"]["context"]
    assert (build / pool["build"]["dockerfile"]).samefile(TOP / "packaging/container/Containerfile")
    mounted = [v.split(":")[0] for s in services.values() for v in s.get("volumes", [])]
    assert mounted and all((TOP / "packaging/container" / file).is_file() for file in mounted)
    for service in services.values():
        _, _, options = service.get("tmpfs", "").partition(":")
        assert {o.split("=")[0] for o in options.split(",") if o} <= {"mode", "size"}, "podman knows no owner"
    assert not re.search(r"(?<!\$)\$[A-Z]", text), "compose would put a variable of its own there"


def test_containerfile():
    """What it copies is there; the program is the one that takes the signals; not root."""
    for path in re.findall(r"^COPY (packaging/\S+)", CONTAINERFILE, re.M):
        assert (TOP / path).exists()
    assert re.search(r'^ENTRYPOINT \["', CONTAINERFILE, re.M) and re.search(r'^CMD \["', CONTAINERFILE, re.M)
    assert ENTRYPOINT.rstrip().splitlines()[-1].startswith("exec pgpool ")


def test_the_archive_has_every_source():
    """`make dist` takes what the module.am files name: a header that none names is missed only by who builds from the archive."""
    named = "".join((TOP / p).read_text(encoding="utf-8") for p in [*TOP.glob("src/**/module.am"), TOP / "Makefile.am"])
    sources = [p.relative_to(TOP) for end in ("c", "h", "def", "l", "y", "js", "css", "html")
               for p in (TOP / "src").rglob(f"*.{end}")]
    assert len(sources) > 500
    missing = [str(p) for p in sources if not re.search(rf"(?<![\w.-]){re.escape(p.name)}(?![\w.-])", named)]
    assert not missing


def needed_packages() -> set[str]:
    """Debian's packages with the libraries that this pgpool is linked with."""
    shown = subprocess.run(["ldd", os.environ["PGPOOL_BIN"]], capture_output=True, text=True, check=True).stdout
    linked = subprocess.run(["readelf", "-d", os.environ["PGPOOL_BIN"]], capture_output=True, text=True, check=True).stdout
    direct = re.findall(r"\(NEEDED\).*\[(.*)\]", linked)
    paths = [Path(path).resolve() for name, path in re.findall(r"(\S+) => (/\S+)", shown) if name in direct]
    assert len(paths) == len([name for name in direct if not name.startswith("ld-")])
    owners = subprocess.run(["dpkg", "-S", *(f"*/{path.parent.name}/{path.name}" for path in paths)], capture_output=True, text=True, check=True).stdout
    return {owner.split(":")[0] for owner in owners.splitlines()}


@pytest.mark.skipif('VERSION_CODENAME=bookworm' not in Path("/etc/os-release").read_text(encoding="utf-8"), reason="packages have other names here")
def test_the_image_has_the_libraries():
    """The second stage installs what the program of the first is linked with."""
    needed = needed_packages() - {"libc6"}
    assert len(needed) > 8
    installed = re.search(r"\nFROM .*?apt-get install (.*?)&&", CONTAINERFILE.split("FROM", 1)[1], re.S)[1].split()
    assert needed <= set(installed), needed - set(installed)
