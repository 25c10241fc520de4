"""Access rules by librdkafka's admin client, as tuples (permission, operation, principal, host, pattern, type, name)."""
from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType,
                                   ResourceType)

from . import feed


def rule(text):
    """The tuple of "ALLOW READ User:bob [from HOST] [on LITERAL|PREFIXED topic|group] NAME"."""
    words = text.split()
    permission, operation, principal, *rest = words
    host = pattern = kind = None
    if rest[0] == "from":
        host, rest = rest[1], rest[2:]
    if rest[0] == "on":
        pattern, kind, rest = rest[1], rest[2], rest[3:]
    return permission, operation, principal, host or "*", pattern or "LITERAL", (kind or "topic").upper(), rest[0]


def binding(r, kind=AclBinding):
    """Of a tuple; kind AclBindingFilter: what finds just that rule."""
    permission, operation, principal, host, pattern, resource, name = r
    return kind(ResourceType[resource], name, ResourcePatternType[pattern], principal, host, AclOperation[operation],
                AclPermissionType[permission])


def put(bootstrap, *texts):
    """Creates rules."""
    admin = feed.admin(bootstrap)
    for future in admin.create_acls([binding(rule(t)) for t in texts]).values():
        future.result(60)


def remove(bootstrap, *texts):
    """Removes just these rules."""
    admin = feed.admin(bootstrap)
    for future in admin.delete_acls([binding(rule(t), AclBindingFilter) for t in texts]).values():
        future.result(60)


def listed(bootstrap, part=""):
    """The rules whose resource's name has this part, sorted."""
    admin = feed.admin(bootstrap)
    everything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                  AclPermissionType.ANY)
    return sorted((b.permission_type.name, b.operation.name, b.principal, b.host, b.resource_pattern_type.name,
                   b.restype.name, b.name) for b in admin.describe_acls(everything).result(60) if part in b.name)
