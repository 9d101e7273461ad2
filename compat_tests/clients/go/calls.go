package main

// From a method's name to the method.

import "encoding/json"

func callProducer(p producer, method string, raw json.RawMessage) (any, error) {
	switch method {
	case "send":
		return nil, p.send(decoded[record](raw))
	case "flush":
		deliveries, err := p.flush()
		return some(deliveries), err
	case "begin":
		return nil, p.begin()
	case "commit":
		return nil, p.commit()
	case "abort":
		return nil, p.abort()
	case "close":
		return nil, p.close()
	default:
		panic(method)
	}
}

func callConsumer(c consumer, method string, with arguments) (any, error) {
	switch method {
	case "assign":
		return nil, c.assign(with.Starts)
	case "subscribe":
		return nil, c.subscribe(with.Topics)
	case "subscribe_pattern":
		return nil, c.subscribePattern(with.Pattern)
	case "subscribe_broker_pattern":
		return nil, c.(serverSide).subscribeBrokerPattern(with.Pattern)
	case "rebalances":
		return some(c.(serverSide).rebalances()), nil
	case "poll":
		messages, err := c.poll(milliseconds(with.TimeoutMs))
		return some(messages), err
	case "seek":
		return nil, c.seek(with.Where, with.Offset)
	case "position":
		return c.position(with.Where)
	case "assignment":
		return some(c.assignment()), nil
	case "commit":
		return nil, c.commit(with.Offsets)
	case "committed":
		return c.committed(with.Where)
	case "watermarks":
		low, high, err := c.watermarks(with.Where)
		return []int64{low, high}, err
	case "offset_for_time":
		return c.offsetForTime(with.Where, with.TimestampMs)
	case "close":
		return nil, c.close()
	default:
		panic(method)
	}
}

func callAdmin(a admin, method string, with arguments) (any, error) {
	switch method {
	case "create_topic":
		return nil, a.createTopic(with.newTopic)
	case "delete_topic":
		return nil, a.deleteTopic(with.Name)
	case "list_topics":
		names, err := a.listTopics()
		return some(names), err
	case "describe_topic":
		leaders, err := a.describeTopic(with.Name)
		return pairs(leaders), err
	case "create_partitions":
		return nil, a.createPartitions(with.Name, with.Total)
	case "describe_configs":
		return a.describeConfigs(with.Kind, with.Name)
	case "alter_configs":
		return nil, a.alterConfigs(with.Name, with.Configs)
	case "incremental_alter_configs":
		return nil, a.incrementalAlterConfigs(with.Name, with.Changes)
	case "delete_records":
		return a.deleteRecords(with.Where, with.BeforeOffset)
	case "list_offset":
		return a.listOffset(with.Where, with.Spec)
	case "describe_cluster":
		return a.describeCluster()
	case "describe_log_dirs":
		sizes, err := a.describeLogDirs(with.Name)
		return pairs(sizes), err
	case "close":
		return nil, a.close()
	default:
		return callAdminForGroups(a, method, with)
	}
}

func callAdminForGroups(a admin, method string, with arguments) (any, error) {
	switch method {
	case "list_groups":
		names, err := a.listGroups()
		return some(names), err
	case "describe_group":
		return a.describeGroup(with.Name)
	case "delete_group":
		return nil, a.deleteGroup(with.Name)
	case "group_offsets":
		offsets, err := a.groupOffsets(with.Name)
		return some(offsets), err
	case "alter_group_offsets":
		return nil, a.alterGroupOffsets(with.Name, with.Offsets)
	default:
		panic(method)
	}
}
