"""Kafka as jars, fetched by Maven package name into the cache, with class archives that make brokers start quickly."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from . import cache

VERSIONS = ("4.4.0", "4.3.0", "3.9.1", "2.8.2")
NO_MIRROR = ("4.4.0",)  # org.apache.kafka:connect-mirror was not published for these
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
OTHER_LOGGERS = ("slf4j-log4j12-*.jar", "slf4j-reload4j-*.jar", "log4j-slf4j*-impl-*.jar")

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>heliostat</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
%s
  </dependencies>
</project>
"""
DEPENDENCY = """    <dependency>
      <groupId>%s</groupId>
      <artifactId>%s</artifactId>
      <version>%s</version>
    </dependency>"""


def short(version):
    """4.3 -> 4.3.0: lets people name a version by its first two parts."""
    return next((v for v in VERSIONS if v == version or v.startswith(version + ".")), version)


def uses_zookeeper(version):
    """True for releases that the lab starts with ZooKeeper."""
    return version.startswith("2.")


def packages(version):
    """(group, artifact, version) of what one Kafka release consists of."""
    names = ["kafka_2.13", "kafka-clients"]
    if not uses_zookeeper(version):
        names.append("kafka-tools")
    if version not in NO_MIRROR:
        names.append("connect-mirror")
    return [("org.apache.kafka", n, version) for n in names] + [("org.slf4j", "slf4j-simple", "1.7.36")]


def libs(version):
    """The folder with all jars of a release, fetched when it is not in the cache yet."""
    version = short(version)
    folder = cache.root() / "kafka" / version
    if folder.is_dir():
        return folder
    with cache.locked("kafka-" + version):
        if not folder.is_dir():
            fetch(version, folder)
    return folder


def fetch(version, folder, attempts=3):
    """Copies the jars beside the final place first: a broken download never looks like a whole one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, attempts + 1):
        temp = pathlib.Path(tempfile.mkdtemp(prefix="." + version + "-", dir=folder.parent))
        temp.chmod(0o755)
        try:
            copy_dependencies(version, temp)
            temp.rename(folder)
            return
        except RuntimeError:
            if attempt == attempts:
                raise
            time.sleep(3 * attempt)
        finally:
            shutil.rmtree(temp, ignore_errors=True)


def copy_dependencies(version, out):
    """One Maven run; raises RuntimeError with Maven's own words and a hint."""
    with tempfile.TemporaryDirectory(prefix="heliostat-pom-") as work:
        pom = pathlib.Path(work) / "pom.xml"
        pom.write_text(POM % "\n".join(DEPENDENCY % p for p in packages(version)))
        command = ["mvn", "-q", "-B", "-f", str(pom), PLUGIN, "-DoutputDirectory=%s" % out,
                   "-DincludeScope=runtime"]
        try:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=900)
        except FileNotFoundError:
            raise SystemExit("Maven is not installed: run tools/setup.sh test") from None
        except subprocess.TimeoutExpired:
            raise RuntimeError("Maven did not end within 15 minutes") from None
    for pattern in OTHER_LOGGERS:
        for jar in out.glob(pattern):
            jar.unlink()
    if run.returncode or not list(out.glob("kafka-clients-*.jar")):
        raise RuntimeError("Maven could not fetch Kafka %s; is Maven Central, or a mirror named in "
                           "~/.m2/settings.xml, within reach?\n%s" % (version, run.stdout[-3000:]))


def java():
    """The java program: $JAVA_HOME first, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not found or not os.path.exists(found):
        raise SystemExit("Java is not installed: run tools/setup.sh test")
    return found


def archive_path(version):
    """The class archive of this release for this very Java: another Java would ignore it without a word."""
    path = os.path.realpath(java())
    mark = hashlib.sha256(("%s %d" % (path, os.stat(path).st_mtime)).encode()).hexdigest()[:12]
    return cache.root() / "kafka" / ("%s-%s.jsa" % (short(version), mark))


def archive(version):
    """The class archive, made when missing by one clean run of a broker; None when that does not work here."""
    path = archive_path(version)
    if path.exists():
        return path
    from . import cluster  # the only place where jars need a cluster
    with cache.locked("archive-" + short(version)):
        if path.exists():
            return path
        temp = path.with_suffix(".%d.tmp" % os.getpid())
        probe = cluster.Cluster(version, archive=None, jvm=["-XX:ArchiveClassesAtExit=%s" % temp])
        try:
            probe.start()
            probe.terminate(1, limit=240)  # the archive is written on the way out, slowly on a busy machine
        finally:
            probe.stop()
        if not temp.exists():
            return None
        temp.rename(path)
    return path
