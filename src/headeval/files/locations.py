"""Files of a store (S3, Google Cloud Storage, Azure, HDFS), named by a URI and opened through pyarrow's filesystems."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from pyarrow import fs

# Two letters at least: one is a drive of Windows. `Path` makes one slash of two, so an output can have just one.
_URI = re.compile(r"(?s)([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)")
# What follows the last question mark, if it looks like options; else the mark is one of a pattern.
_OPTIONS = re.compile(r"(?s)\?(\w[\w.-]*=[^?]*)$")
# Options whose values may be shown; the value of any other may be a secret.
# fmt: off
_OPEN_OPTIONS = frozenset({
    "region", "scheme", "endpoint_override", "tls_ca_file_path", "allow_delayed_open", "allow_bucket_creation",
    "allow_bucket_deletion", "force_virtual_addressing", "retry_limit_seconds", "project_id", "enable_tls",
    "blob_storage_authority", "dfs_storage_authority", "credential_kind", "replication", "buffer_size",
    "default_block_size",
})
# fmt: on
_MASK = "***"
_SAFE = ":/@%+,;=!$&'()*~"  # what Arrow takes as it is in front of the key
# Arrow's own defaults try an unreachable store ten times, and Google's for a quarter of an hour.
_CONNECT_SECONDS, _ANSWER_SECONDS, _ATTEMPTS, _GOOGLE_SECONDS = 3, 10, 3, 10


@dataclass(frozen=True, slots=True, repr=False)
class RemoteFile:
    """A file (or a folder, or a pattern) of a store.

    The value is hashable and can be pickled: it holds names alone, and every process connects by itself when it first
    opens a file. Where the URI has credentials or secret options, so has the pickle; `str` and `repr` mask them.

    Attributes
    ----------
    prefix : scheme and authority: `s3://bucket`, `hdfs://host:8020`, `abfs://container@account.dfs.core.windows.net`.
    key : the name below that, without slashes at its ends, percent-encoding undone.
    query : the options of the URI, as they were given.
    size : in bytes, where it is known, else 0.

    Examples
    --------
    >>> file = parse_uri("s3://AKIA:secret@bucket/a%20b/c.parquet?region=eu-west-1&session_token=abc")
    >>> str(file)
    's3://***@bucket/a b/c.parquet?region=eu-west-1&session_token=***'
    >>> file.name, file.stem, file.suffix
    ('c.parquet', 'c', '.parquet')
    """

    prefix: str
    key: str
    query: str = ""
    size: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return masked_uri(f"{self.prefix}/{self.key}{'?' + self.query if self.query else ''}")

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    @property
    def scheme(self) -> str:
        """The name of the kind of store, in small letters."""
        return self.prefix.partition("://")[0]

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of the name with its dot, or an empty text."""
        return PurePosixPath(self.name).suffix

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def filesystem(self) -> "fs.FileSystem":
        """Pyarrow's filesystem for the store, one a process."""
        return _connect(self.prefix, self.query)[0]

    @property
    def path(self) -> str:
        """The name of the file within the filesystem, the bucket included."""
        return (_connect(self.prefix, self.query)[1] + self.key).rstrip("/") or "/"

    @property
    def identity(self) -> tuple[str, ...]:
        """What two names of one file have in common."""
        endpoint = [option for option in self.query.split("&") if option.startswith("endpoint_override=")]
        return (self.scheme, self.prefix.rpartition("@")[2].rpartition("://")[2], self.path, *endpoint)

    @property
    def secrets(self) -> frozenset[str]:
        """The credentials in the URI, both as they are written there and decoded."""
        found = _credentials(self.prefix)
        found += [option.partition("=")[2] for option in self.query.split("&") if _masked_option(option) != option]
        return frozenset(text for secret in found for text in (secret, unquote(secret)) if text)

    def sibling(self, path: str, size: int = 0) -> "RemoteFile":
        """Return the file that is called `path` within the same filesystem."""
        root = _connect(self.prefix, self.query)[1]
        return replace(self, key=path.removeprefix(root).strip("/"), size=size)

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading at any place; nothing is read ahead.

        Raises
        ------
        OSError, ValueError : whatever pyarrow raises; `headeval.files.arrow_errors.reading` turns it into a DataError.
        """
        if mode != "rb":
            raise ValueError(f"a remote file is read only, not opened as {mode}")
        return cast("BinaryIO", self.filesystem.open_input_file(self.path))


# A file to read: on this machine or in a store.
Location = Path | RemoteFile


def is_uri(text: str) -> bool:
    """Whether `text` names a place in a store (or `file://…`) and no local path."""
    match = _URI.match(text)
    return match is not None and match[2] == "/"


def looks_remote(path: Path) -> bool:
    """Whether a path was made from a URI, of which `Path` has kept one slash, and is not there as a local file.

    Examples
    --------
    >>> looks_remote(Path("s3://bucket/head.json")), looks_remote(Path("head.json"))
    (True, False)
    """
    match = _URI.match(str(path))
    return match is not None and not os.path.lexists(path.parts[0])


def is_same_file(path: Path, other: "Location") -> bool:
    """Whether both are there and the same file; what cannot be looked at is reported by whoever opens it.

    Examples
    --------
    >>> is_same_file(Path("."), Path("./")), is_same_file(Path("."), Path("x" * 300))
    (True, False)
    """
    try:
        return isinstance(other, Path) and path.samefile(other)
    except OSError:
        return False


def parse_uri(text: str) -> RemoteFile:
    """Take a URI apart; nothing is connected or checked.

    Raises
    ------
    ValueError : where the credentials hold a slash, which ends them, or no bucket is named.
    """
    scheme, _, rest = text.partition("://")
    options = _OPTIONS.search(rest)
    body = rest[: options.start()] if options else rest
    if _cut_credentials(body):
        raise ValueError("the credentials hold a slash: write it as %2F, or put them into environment variables")
    authority, _, key = body.partition("/")
    if not authority and scheme.lower() not in {"hdfs", "viewfs", "file"}:
        raise ValueError("it names no bucket")
    return RemoteFile(f"{scheme.lower()}://{authority}", unquote(key).strip("/"), options[1] if options else "")


def local_path(text: str) -> Path:
    """Return the path that a URI of the scheme `file` means.

    Raises
    ------
    ValueError : where it names another host.

    Examples
    --------
    >>> local_path("file:///data/a%20b.csv").as_posix()
    '/data/a b.csv'
    """
    host, slash, path = text.partition("://")[2].partition("/")
    if host not in {"", "localhost"} or not slash:
        raise ValueError("a file:// URI needs three slashes and the whole path, as in file:///data/a.csv")
    return Path("/" + unquote(path))


def masked_uri(text: str) -> str:
    """Return a URI with everything that can be a secret replaced by three stars.

    Examples
    --------
    >>> masked_uri("s3://KEY:SEC/RET@bucket/a.csv"), masked_uri("hdfs://ann:pw@host:8020/a")
    ('s3://***@bucket/a.csv', 'hdfs://ann:***@host:8020/a')
    """
    match = _URI.match(text)
    if match is None:
        return text
    scheme, rest = match[1].lower(), match[3]
    options = _OPTIONS.search(rest)
    body = rest[: options.start()] if options else rest
    end = body.rfind("@") if _cut_credentials(body) else body.partition("/")[0].rfind("@")
    if end >= 0:
        user, colon, _ = body[:end].partition(":")
        body = (user + (colon and f":{_MASK}") if _is_open(scheme, user) else _MASK) + body[end:]
    query = "&".join(map(_masked_option, options[1].split("&"))) if options else ""
    return f"{scheme}://{body}{'?' + query if query else ''}"


def _cut_credentials(body: str) -> bool:
    """Whether a slash inside the credentials has cut them: a colon, no port behind it, and the @ after the slash."""
    authority, slash, rest = body.partition("/")
    port = authority.rpartition(":")[2]
    return bool(slash) and "@" in rest and "@" not in authority and ":" in authority and not port.isdigit()


def _masked_option(option: str) -> str:
    name, equals, value = option.partition("=")
    return option if name in _OPEN_OPTIONS and "@" not in unquote(value) else f"{name}{equals}{value and _MASK}"


def _is_open(scheme: str, user: str) -> bool:
    """Whether what stands before the colon is a user or a container; else it may be the identifier of a key."""
    return scheme in {"hdfs", "viewfs", "abfs", "abfss"} or user == "anonymous"


def _credentials(prefix: str) -> list[str]:
    user, _, password = prefix.partition("://")[2].rpartition("@")[0].partition(":")
    return [password] if _is_open(prefix.partition("://")[0], user) else [user, password]


def _connect(prefix: str, query: str) -> "tuple[fs.FileSystem, str]":
    """Return the filesystem and what stands there before the key of every file."""
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(("AWS_", "GOOGLE_", "AZURE_"))))
    return _connected(prefix, query, settings)


@lru_cache(maxsize=256)
def _connected(
    prefix: str,
    query: str,
    settings: tuple[tuple[str, str], ...],  # noqa: ARG001 - a part of the key of the cache
) -> "tuple[fs.FileSystem, str]":
    """Connect; `settings` are those of the environment, which pyarrow reads by itself."""
    from pyarrow import fs  # not for who reads local files

    probe = "x"
    filesystem, path = fs.FileSystem.from_uri(f"{quote(prefix, safe=_SAFE)}/{probe}{'?' + query if query else ''}")
    patience = dict(_patience(filesystem.type_name))
    if patience:
        # What a filesystem pickles are its options, among them those of the URI and the environment.
        rebuild, (options,) = filesystem.__reduce__()
        missing = {name: value for name, value in patience.items() if options.get(name) in (None, -1.0)}
        filesystem = rebuild({**options, **missing})
    return filesystem, path.removesuffix(probe)


def _patience(type_name: str) -> Iterator[tuple[str, Any]]:
    """Yield the options by which an unreachable store ends in an error within seconds."""
    from pyarrow import fs

    if type_name == "s3":
        attempts = os.environ.get("AWS_MAX_ATTEMPTS", "")
        yield "connect_timeout", _CONNECT_SECONDS
        yield "request_timeout", _ANSWER_SECONDS
        yield (
            "retry_strategy",
            fs.AwsStandardS3RetryStrategy(max_attempts=int(attempts) if attempts.isdigit() else _ATTEMPTS),
        )
    elif type_name == "gcs":
        yield "retry_time_limit", timedelta(seconds=_GOOGLE_SECONDS)
