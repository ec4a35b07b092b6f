"""What a store said when it gave no file, in words that say what to do."""

import re

from headeval.files.locations import RemoteFile
from headeval.printable import printable, quoted

_LONGEST_REASON = 160
_AWS = re.compile(
    r"AWS Error (\w+)(?: \((HTTP status \d+)\))? during \w+ operation: (?:No response body\.\s*)?(.*)", re.DOTALL
)
# What says nothing to a reader, or differs from one time to the next.
_NOISE = re.compile(
    r"\s*\(Request ID: [^)]*\)|curlCode: \d+, [^;]*; Details: |google::cloud::Status\(\w+: |PerformWork\(\) - |"
    r"Retry policy exhausted, with a last message of |Unknown error: |Unable to parse ExceptionName: |"
    r"N5Azure\w+: |\.? (The request was not sent|error_info=).*",
    re.DOTALL,
)

_KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or AWS_PROFILE",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or log in with gcloud; a public bucket is gs://anonymous@BUCKET",
    "abfs": "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or log in with az",
}
_PLACES = {
    "s3": "check the network and AWS_ENDPOINT_URL, or endpoint_override=HOST:PORT and scheme=http in the URI",
    "gs": "check the network, or endpoint_override=HOST:PORT and scheme=http in the URI",
    "hdfs": "check host and port, and that JAVA_HOME, HADOOP_HOME and CLASSPATH are set",
}
_UNKNOWN_STORE = (
    "is of no known store: headeval reads s3://, gs://, abfs://, hdfs:// and local files; download it first"
)
_ALIASES = {"gcs": "gs", "abfss": "abfs", "viewfs": "hdfs"}
_UNUSABLE = re.compile(r"query parameter|Cannot parse URI|in (?:\w+ )*URI", re.IGNORECASE)
_NO_KEY = re.compile(r"NO_SUCH_KEY|NoSuchKey")
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound")
_NOT_BUILT = re.compile(r"not built|not compiled|compiled without", re.IGNORECASE)
_ELSEWHERE = re.compile(r"Permanent_?Redirect|HTTP status 30[17]|AuthorizationHeaderMalformed|IllegalLocation", re.I)
_REFUSED = re.compile(
    r"ACCESS_?DENIED|INVALID_?ACCESS_?KEY|SIGNATURE|EXPIRED|INVALID_?TOKEN|CLIENT_TOKEN|UNRECOGNIZED_?CLIENT|"
    r"MISSING_AUTHENTICATION|HTTP status 40[013]|PERMISSION_DENIED|UNAUTHENTICATED|OAuth2|Authentication",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|CURL error|resolve host|Could not connect|timed out|libjvm|libhdfs", re.I
)
_BUSY = re.compile(r"SLOW_?DOWN|THROTTL|INTERNAL_?(FAILURE|ERROR)|SERVICE_?UNAVAILABLE|HTTP status (429|5\d\d)", re.I)


def explained(file: RemoteFile, error: BaseException) -> str:
    """Return what is wrong with `file` and what to do, as the second half of a sentence that begins with its name."""
    scheme = _ALIASES.get(file.scheme, file.scheme)
    said, text = _said(file, error), str(error)
    if isinstance(error, FileNotFoundError) or _NO_KEY.search(text):
        return "does not exist"
    if _NO_BUCKET.search(text):
        return no_bucket(file)
    keys = _KEYS.get(scheme, "check the credentials")
    for pattern, words in (
        (re.compile("Unrecognized filesystem type"), _UNKNOWN_STORE),
        (_UNUSABLE, f"is no usable URI: {said}"),
        (_NOT_BUILT, f"cannot be read: this build of pyarrow has no support for {scheme}://"),
        (_ELSEWHERE, f"is kept in another region: {said}; set AWS_REGION, or region=… in the URI"),
        (_REFUSED, f"may not be read, or does not exist: {said}; {keys}"),
        (_UNREACHABLE, f"cannot be reached: {said}; {_PLACES.get(scheme, 'check the network')}"),
        (_BUSY, f"cannot be read: the store is busy or out of order ({said}); try again later"),
    ):
        if pattern.search(text):
            return words
    return f"cannot be read, it may be damaged or cut short: {said}"


def no_bucket(file: RemoteFile) -> str:
    """Return the second half of the sentence on a file whose bucket does not exist."""
    bucket = file.path.partition("/")[0]
    return f"cannot be read: there is no bucket {quoted(bucket)}; check its name, and the store that is asked"


def _said(file: RemoteFile, error: BaseException) -> str:
    """Return the essence of an error in one short line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    code = ""
    if match := _AWS.search(text):
        code, text = match[2] or match[1], match[3]
    # Arrow repeats the whole URI where it cannot parse it.
    text = re.sub(r"'[A-Za-z0-9+.-]+://.*'", "it", _without(file.secrets, text))
    text = next(iter(_NOISE.sub("", text).strip().splitlines()), "")
    parts = [part for part in ("" if code == "NETWORK_CONNECTION" else code, text) if part]
    return printable(": ".join(parts).rstrip(".) ") or type(error).__name__, longest=_LONGEST_REASON)


def _without(secrets: frozenset[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
