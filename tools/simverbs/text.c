/* Names of statuses and events; functions that are there only to be linked. */
#include "sim.h"

#include <string.h>

static const char* const statuses[] =
	{"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR",
    "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR",
    	"FATAL_ERR",
    "RESP_TIMEOUT_ERR", "GENERAL_ERR", "TM_ERR", "TM_RNDV_INCOMPLETE"};
static const char* const events[] =
	{"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG",
    "PATH_MIG_ERR", "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR",
    "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE", "WQ_FATAL", "DEVICE_SPEED_CHANGE"};

#define PICK(table, i) ((unsigned)(i) < sizeof(table) / sizeof(table)[0] ? (table)[i] : "unknown")
const char* sv_status_name(int s) { return PICK(statuses, s); }
const char* sv_event_name(int e) { return PICK(events, e); }
PUBLIC const char* ibv_wc_status_str(enum ibv_wc_status s) { return PICK(statuses, s); }
PUBLIC const char* ibv_event_type_str(enum ibv_event_type e) { return PICK(events, e); }

/* What perftest links and calls only for datagrams and shared receives. */
static void* refused(void) { errno = EOPNOTSUPP; return NULL; }
PUBLIC struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* a) { return refused(); }
PUBLIC struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* a) { return refused(); }
PUBLIC struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp) { return refused(); }
PUBLIC int ibv_destroy_ah(struct ibv_ah* ah) { return EOPNOTSUPP; }
PUBLIC int ibv_destroy_srq(struct ibv_srq* srq) { return EOPNOTSUPP; }
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
PUBLIC void* ibv_create_ah_from_wc(void) { return refused(); }
PUBLIC int ibv_attach_mcast(void) { return EOPNOTSUPP; }
PUBLIC int ibv_detach_mcast(void) { return EOPNOTSUPP; }
PUBLIC int ibv_init_ah_from_wc(void) { return EOPNOTSUPP; }
