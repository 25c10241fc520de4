"""The server.properties of lab clusters: small, quick, and with nothing that differs from node to node by accident."""
import base64
import secrets

SMALL = {  # small internal topics, no wait before the first rebalance, quick retention and compaction
    "offsets.topic.num.partitions": 4, "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4, "group.initial.rebalance.delay.ms": 0,
    "num.network.threads": 2, "num.io.threads": 2, "log.cleaner.dedupe.buffer.size": 4194304,
    "log.retention.check.interval.ms": 1500, "log.initial.task.delay.ms": 500,
    "log.segment.delete.delay.ms": 500, "log.cleaner.backoff.ms": 1500, "auto.create.topics.enable": "false",
}
KRAFT = {
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.election.timeout.ms": 300, "controller.quorum.fetch.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 1000, "broker.session.timeout.ms": 4000,
    "metadata.max.idle.interval.ms": 0,  # no empty records: a third less work for an idle broker
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
ACLS = {"allow.everyone.if.no.acl.found": "true", "super.users": "User:ANONYMOUS"}  # brokers come without a name


def new_id():
    """A Kafka Uuid: 16 bytes, URL-safe base64, no padding, no leading dash."""
    text = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    return text if text[0] != "-" else new_id()


def replication(brokers):
    """Replication of the internal topics: three where there are three brokers."""
    factor = min(3, brokers)
    props = {k + ".replication.factor": factor
             for k in ("offsets.topic", "transaction.state.log", "default", "share.coordinator.state.topic")}
    for k in ("transaction.state.log", "share.coordinator.state.topic"):
        props[k + ".min.isr"] = min(2, factor)
    return props


def listener_lines(node, listeners, host):
    """What a broker offers: every listener of the lab has a port of its own on each node."""
    urls = ["%s://%s:%d" % (name, host, node.ports[name]) for name in listeners]
    return {"listeners": ",".join("%s://127.0.0.1:%d" % (name, node.ports[name]) for name in listeners),
            "advertised.listeners": ",".join(urls), "inter.broker.listener.name": next(iter(listeners))}


def broker(node, brokers, listeners, host, zookeeper_port, props):
    """The properties of one broker. node: its id, ports by listener name, folder."""
    maps = dict(listeners)
    out = dict(SMALL, **replication(len(brokers)), **ACLS)
    out["log.dirs"] = node.folder / "data"
    out.update(listener_lines(node, listeners, host))
    if zookeeper_port:
        out.update({"broker.id": node.id, "zookeeper.connect": "127.0.0.1:%d" % zookeeper_port,
                    "zookeeper.session.timeout.ms": 2000,
                    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"})
    else:
        maps["CONTROLLER"] = "PLAINTEXT"
        out.update(KRAFT)
        out.update({"node.id": node.id, "process.roles": "broker,controller",
                    "controller.quorum.voters": ",".join(
                        "%d@127.0.0.1:%d" % (n.id, n.ports["CONTROLLER"]) for n in brokers)})
        out["listeners"] += ",CONTROLLER://127.0.0.1:%d" % node.ports["CONTROLLER"]
    out["listener.security.protocol.map"] = ",".join("%s:%s" % kv for kv in maps.items())
    out.update(props)
    return out


def zookeeper(folder, port):
    """zoo.cfg; its admin server would want port 8080."""
    return {"dataDir": folder / "zk", "clientPort": port, "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false", "tickTime": 500, "maxClientCnxns": 0}


def write(path, props):
    """Writes a properties file."""
    path.write_text("".join("%s=%s\n" % kv for kv in props.items()))
