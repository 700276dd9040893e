"""The files in `deploy/` are well-formed and agree with each other and with the package.

They are not run: that takes a container engine. `data/compose-spec.json` is the schema of the
Compose specification, as the package `check-jsonschema` 0.39.0 has it; its license is beside it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types of its own
import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from adk_stream_protocol import Settings
from adk_stream_protocol.cli.arguments import ServeOptions, parse_arguments
from adk_stream_protocol.stores.opening import PostgresServer, parse_database

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
GIVEN = {"POSTGRES_PASSWORD": "a1b2", "PUBLIC_HOST": "chat.example", "PORT": "8080"}
APPS = ("app-1", "app-2")


def interpolated(text: str) -> str:
    """Return Compose's text with its variables filled in."""
    return re.sub(
        r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda found: GIVEN.get(found[1], found[2] or ""), text
    )


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(interpolated((DEPLOY / "compose.yaml").read_text()))
    return found


def services() -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"]
    return found


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration.removesuffix("s"))


def ran(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # the commands of this file
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=DEPLOY,
        env=os.environ | environment,
        timeout=60,
    )


# compose.yaml


def test_compose_is_what_the_specification_allows() -> None:
    schema = json.loads((Path(__file__).parent / "data/compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    told = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(compose())]
    assert told == []
    broken = compose()
    broken["services"]["app-1"]["stop_grace"] = "30s"
    assert not validator.is_valid(broken), "the schema knows what a service may say"


def test_compose_itself_reads_it() -> None:
    docker = shutil.which("docker")
    if docker is None or ran(docker, "compose", "version").returncode != 0:
        pytest.skip("docker compose is not installed")
    done = ran(docker, "compose", "--file", "compose.yaml", "config", "--quiet", **GIVEN)
    assert done.returncode == 0, done.stderr


def test_there_are_two_instances_that_differ_in_nothing() -> None:
    first, second = (services()[name] for name in APPS)
    assert first == second


@pytest.mark.parametrize("name", APPS)
def test_an_instance_is_served_from_the_database_that_is_there(name: str) -> None:
    program, *arguments = services()[name]["command"]
    options = parse_arguments(arguments)
    database = services()["database"]
    assert program == "adk-stream"
    assert isinstance(options, ServeOptions)
    assert (options.host, options.port, options.log_format) == ("0.0.0.0", 8000, "json")  # noqa: S104  # inside its container
    parsed = parse_database(options.database)
    assert isinstance(parsed, PostgresServer)
    user, name_of_it = (database["environment"][f"POSTGRES_{key}"] for key in ("USER", "DB"))
    password = database["environment"]["POSTGRES_PASSWORD"]
    assert parsed.url == f"postgresql://{user}:{password}@database/{name_of_it}"
    assert any(mount.endswith(":/var/lib/postgresql/data") for mount in database["volumes"])


@pytest.mark.parametrize("name", APPS)
def test_an_instance_has_longer_to_end_than_its_drain_takes(name: str) -> None:
    service = services()[name]
    settings = Settings.from_environment(
        {key: value for key, value in service["environment"].items() if value is not None}
    )
    assert settings.drain_seconds == Settings().drain_seconds
    assert seconds(service["stop_grace_period"]) > settings.drain_seconds + 5
    assert {"chat.example", *APPS} == set(settings.allowed_hosts)
    unknown = [key for key in service["environment"] if key.startswith("ADK_STREAM_")]
    assert {key.removeprefix("ADK_STREAM_").lower() for key in unknown} <= set(
        Settings.__dataclass_fields__
    )


def test_nothing_gets_requests_before_it_is_ready() -> None:
    found = services()
    for name in APPS:
        check = " ".join(found[name]["healthcheck"]["test"])
        assert "http://127.0.0.1:8000/readyz" in check
        assert found[name]["depends_on"]["database"]["condition"] == "service_healthy"
        assert found["proxy"]["depends_on"][name]["condition"] == "service_healthy"
    assert "pg_isready" in " ".join(found["database"]["healthcheck"]["test"])


def test_the_check_of_an_instance_is_python_that_compiles() -> None:
    for name in APPS:
        compile(services()[name]["healthcheck"]["test"][-1], name, "exec")


def test_what_is_mounted_and_built_exists() -> None:
    for service in services().values():
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            assert (DEPLOY / source).is_file() or source in compose()["volumes"], mount
        if "build" in service:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).is_file()


def test_every_variable_is_explained_and_the_required_ones_are_empty() -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    told = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    text = (DEPLOY / "compose.yaml").read_text()
    used = dict(re.findall(r"\$\{(\w+)(:[-?])", text))
    assert set(told) == set(used)
    for name, how in used.items():
        assert bool(told[name]) == (how == ":-"), f"{name}: no default that someone forgets"


# nginx.conf


def nginx_text() -> str:
    text = (DEPLOY / "nginx.conf").read_text()
    return re.sub(r"#.*", "", text)


def test_nginx_passes_streams_on_to_every_instance() -> None:
    text = nginx_text()
    servers = re.findall(r"server ([\w-]+):(\d+) resolve;", text)
    assert servers == [(name, "8000") for name in APPS]
    for directive in ("proxy_buffering off;", "proxy_http_version 1.1;", "Host $http_host;"):
        assert directive in text
    for sticky in ("ip_hash", "sticky", "hash "):
        assert sticky not in text
    assert re.search(r"proxy_next_upstream [^;]*http_503[^;]*non_idempotent", text)
    size = re.search(r"client_max_body_size (\d+)m;", text)
    assert size is not None
    assert int(size[1]) * 1024 * 1024 == Settings().body_with_files_bytes
    assert re.search(r"location = /metrics \{\s*return 404;", text)


def test_nginx_itself_reads_it(tmp_path: Path) -> None:
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("nginx is not installed")
    # Names are resolved in the network of Compose only, and by nginx 1.27.3 or newer.
    text = re.sub(r"server [\w-]+:8000 resolve;", "server 127.0.0.1:8000;", nginx_text())
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/nginx.pid;\n{text}")
    done = ran(nginx, "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path))
    assert done.returncode == 0, done.stderr


# Dockerfile

INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "CMD"}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word]


def test_the_image_is_made_of_what_is_in_the_repository() -> None:
    assert {word for word, _ in instructions()} == INSTRUCTIONS
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for word, rest in instructions():
        if word == "COPY" and "--from=" not in rest:
            *sources, _ = shlex.split(rest)
            for source in sources:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in allowed, f"{source} is not sent to the builder"


def test_the_image_serves_as_a_user_without_rights() -> None:
    found = instructions()
    last = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    final = dict(found[last:])
    assert final["USER"] == "10001"
    program, *arguments = json.loads(final["CMD"])
    assert program == "adk-stream"
    assert isinstance(parse_arguments(arguments), ServeOptions)
    assert "node" not in (DEPLOY / "Dockerfile").read_text().lower()


def test_the_image_has_a_python_that_the_package_runs_on() -> None:
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    supported = re.findall(
        r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    for image in images:
        found = re.fullmatch(r"python:(3\.\d+)-slim", image)
        assert found is not None
        assert found[1] in supported
