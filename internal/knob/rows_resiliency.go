package knob

// stays is why these rows change nothing.
const stays = "a connection whose port fails ends, it does not move to another"

// later is a row that means nothing while connections stay where they are.
func later(name string, def, least, most int64, theirs string) Spec {
	return Spec{Name: name, Type: Number, Default: def, Min: least, Max: most, Inert: stays, Doc: "Accepted.", Theirs: theirs}
}

const ms = 1<<31 - 1 // the largest number of milliseconds

// resiliencyRows are net_ib's names for moving to another port and back.
var resiliencyRows = map[ID]Spec{
	IBPortFailover:          later("NCCL_IB_RESILIENCY_PORT_FAILOVER", 0, 0, 1, "0. 1: a fused device goes on without the one member that failed, and what did not arrive is sent again."),
	IBFailoverAttempts:      later("NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", 1, 0, 1<<20, "1: how often the peer is asked what has arrived."),
	IBFailoverProbeDelay:    later("NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", 10, 0, ms, "10 ms before it is asked."),
	IBPortRecovery:          later("NCCL_IB_RESILIENCY_PORT_RECOVERY", 0, 0, 1, "0. 1, with failover: a member that works again is taken back."),
	IBRecoveryStartDelay:    later("NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", 200, 0, ms, "200 ms after the failure the first trial begins."),
	IBRecoveryBatchInterval: later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", 500, 0, ms, "500 ms between batches of messages that say \"alive\"."),
	IBRecoveryBatchSize:     later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", 5, 1, 10, "5 messages in a batch, 10 at most."),
	IBRecoverySequenceSize:  later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", 5, 1, 1<<20, "5 messages in order are needed."),
	IBRecoveryAliveTimeout:  later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", 4000, 0, ms, "4000 ms for that."),
	IBRecoveryAckTimeout:    later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", 5000, 0, ms, "5000 ms for the answer."),
	IBRecoveryAttempts:      later("NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", 20, 0, 1<<20, "20 trials (5 before 2.31); after them the member stays out."),
}
