#!/usr/bin/env python3
# capture.py -- keeps real brokers' answers as files, for tests/unit/wire/test_answers.c.
# SPDX-License-Identifier: Apache-2.0
#
#     capture.py HOST:PORT RELEASE     writes tests/data/answers/RELEASE/API-vN.bin
#
# HOST:PORT is a fresh cluster of one broker without authentication, as
# `python3 tests/kafka/lab up --name capture --version 4.4 --brokers 1` gives. Each file is one answer at the
# highest version that the broker and our schemas share, without its size but with its header.
import pathlib
import struct
import sys
import time

import compare
from protocol import Client

TOPIC = "captured"
GROUP = "captured-group"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def batch(producer_id):
    """Three records without keys in an idempotent producer's first batch."""
    now = int(time.time() * 1000)
    records = b""
    for i in range(3):
        record = bytes([0, 0, 2 * i, 1, 2 * 5]) + b"value" + b"\0"
        records += bytes([2 * len(record)]) + record
    body = struct.pack(">hiqqqhii", 0, 2, now, now, producer_id, 0, 0, 3) + records
    rest = struct.pack(">ibI", -1, 2, crc32c(body)) + body
    return struct.pack(">qi", 0, len(rest)) + rest


class Capture:
    def __init__(self, address, release):
        self.client = Client(address, compare.ours())
        self.folder = ROOT / "data/answers" / release
        self.folder.mkdir(parents=True, exist_ok=True)

    def keep(self, name, message):
        """Asks at the newest version and writes the answer down; {} when the broker does not know the API."""
        if self.client.newest(name) is None:
            return {}
        answer, data, version = self.client.call(name, message)
        (self.folder / f"{name}-v{version}.bin").write_bytes(data)
        print(f"{name} v{version}: {len(data)} bytes")
        return answer

    def topic(self):
        """Makes the topic and waits until its partitions have leaders."""
        self.keep("CreateTopics", {"topics": [{"name": TOPIC, "num_partitions": 2, "replication_factor": 1,
                                               "configs": [{"name": "retention.ms", "value": "-1"}]}]})
        for _ in range(100):
            answer, _, _ = self.client.call("Metadata", {"topics": [{"name": TOPIC}]})
            topic = answer["topics"][0]
            if not topic["error_code"] and all(not p["error_code"] for p in topic["partitions"]):
                return topic.get("topic_id") or bytes(16)
            time.sleep(0.2)
        sys.exit("the topic has no leaders")

    def data(self, topic_id):
        names = {"name": TOPIC, "topic_id": topic_id}
        producer = self.producer()
        self.keep("Produce", {"acks": -1, "timeout_ms": 10000, "topic_data": [
            {**names, "partition_data": [{"index": 0, "records": batch(producer)}]}]})
        self.keep("Fetch", {"max_wait_ms": 500, "min_bytes": 1, "topics": [
            {"topic": TOPIC, "topic_id": topic_id, "partitions": [
                {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20},
                {"partition": 1, "fetch_offset": 99, "partition_max_bytes": 1 << 20}]}]})
        self.keep("ListOffsets", {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": [
            {"partition_index": 0, "timestamp": -1}, {"partition_index": 1, "timestamp": 1}]}]})
        self.keep("OffsetForLeaderEpoch", {"replica_id": -1, "topics": [
            {"topic": TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}]})
        self.keep("DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]})
        self.keep("DeleteRecords", {"timeout_ms": 10000, "topics": [
            {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 1}]}]})

    def producer(self):
        """The first question may come before the broker has a block of ids."""
        for _ in range(100):
            answer = self.keep("InitProducerId", {"transactional_id": None, "transaction_timeout_ms": 60000})
            if not answer["error_code"]:
                return answer["producer_id"]
            time.sleep(0.2)
        sys.exit("no producer id")

    def cluster(self):
        self.keep("ApiVersions", {"client_software_name": "heliostat", "client_software_version": "0"})
        self.keep("Metadata", {"topics": None, "allow_auto_topic_creation": False})
        self.keep("DescribeCluster", {"include_cluster_authorized_operations": True})
        self.keep("DescribeTopicPartitions", {"topics": [{"name": TOPIC}]})
        self.keep("DescribeConfigs", {"include_synonyms": True, "resources": [
            {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None}]})
        self.keep("IncrementalAlterConfigs", {"resources": [{"resource_type": 2, "resource_name": TOPIC, "configs": [
            {"name": "retention.ms", "config_operation": 0, "value": "1000000"}]}]})
        self.keep("CreatePartitions", {"timeout_ms": 10000, "topics": [
            {"name": TOPIC, "count": 3, "assignments": None}]})
        self.keep("DescribeAcls", {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1,
                                   "resource_name_filter": None, "principal_filter": None, "host_filter": None,
                                   "permission_type": 1})

    def group(self, topic_id):
        """Waits for the coordinator, then commits as nobody in particular."""
        for _ in range(100):
            answer = self.keep("FindCoordinator", {"key": GROUP, "key_type": 0, "coordinator_keys": [GROUP]})
            first = answer["coordinators"][0] if answer["coordinators"] else answer
            if not first["error_code"] and not self.commit(topic_id):
                break
            time.sleep(0.2)
        self.keep("OffsetFetch", {"group_id": GROUP, "topics": None, "groups": [{"group_id": GROUP, "topics": None}]})
        self.keep("ListGroups", {})
        self.keep("DescribeGroups", {"groups": [GROUP]})

    def commit(self, topic_id):
        answer = self.keep("OffsetCommit", {"group_id": GROUP, "topics": [
            {"name": TOPIC, "topic_id": topic_id, "partitions": [
                {"partition_index": 0, "committed_offset": 2, "committed_metadata": "m"}]}]})
        return answer["topics"][0]["partitions"][0]["error_code"]


def main():
    c = Capture(sys.argv[1], sys.argv[2])
    topic_id = c.topic()
    c.cluster()
    c.data(topic_id)
    c.group(topic_id)
    c.keep("DeleteTopics", {"timeout_ms": 10000, "topic_names": [TOPIC],
                            "topics": [{"name": TOPIC}]})


if __name__ == "__main__":
    main()
