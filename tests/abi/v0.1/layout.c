/* Where every field of every public struct is; written by check_abi.py record. The headers are
 * those on the include path, not the one beside this file.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>
#include <dtrain_transport.h>

#define EXACTLY(type, size) _Static_assert(sizeof(struct type) == (size), #type " has another size")
#define AT_LEAST(type, size) _Static_assert(sizeof(struct type) >= (size), #type " has shrunk")
/* abidiff, told to accept structs that grow, no longer sees a double that became an integer. */
enum { INTEGER = 1, POINTER = 5, REAL = 8 };
#define FIELD(type, field, offset, size, kind)                                                     \
    _Static_assert(offsetof(struct type, field) == (offset) &&                                     \
                       sizeof(((struct type *)0)->field) == (size) &&                              \
                       __builtin_classify_type(((struct type *)0)->field) == (kind),               \
                   #type "." #field " is elsewhere or of another type")

AT_LEAST(dtrain_mem_params, 48);
FIELD(dtrain_mem_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_mem_params, mem_type, 4, 4, INTEGER);
FIELD(dtrain_mem_params, address, 8, 8, POINTER);
FIELD(dtrain_mem_params, length, 16, 8, INTEGER);
FIELD(dtrain_mem_params, dmabuf_offset, 24, 8, INTEGER);
FIELD(dtrain_mem_params, dmabuf_fd, 32, 4, INTEGER);
FIELD(dtrain_mem_params, device, 36, 4, INTEGER);
FIELD(dtrain_mem_params, flags, 40, 8, INTEGER);
EXACTLY(dtrain_event, 64);
FIELD(dtrain_event, user_tag, 0, 8, INTEGER);
FIELD(dtrain_event, request, 8, 8, POINTER);
FIELD(dtrain_event, bytes, 16, 8, INTEGER);
FIELD(dtrain_event, status, 24, 4, INTEGER);
FIELD(dtrain_event, peer, 28, 4, INTEGER);
FIELD(dtrain_event, version, 32, 8, INTEGER);
FIELD(dtrain_event, reserved, 40, 24, POINTER);
AT_LEAST(dtrain_op_params, 64);
FIELD(dtrain_op_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_op_params, flags, 4, 4, INTEGER);
FIELD(dtrain_op_params, user_tag, 8, 8, INTEGER);
FIELD(dtrain_op_params, cq, 16, 8, POINTER);
FIELD(dtrain_op_params, timeout_ns, 24, 8, INTEGER);
FIELD(dtrain_op_params, send_mem, 32, 8, POINTER);
FIELD(dtrain_op_params, recv_mem, 40, 8, POINTER);
FIELD(dtrain_op_params, stream, 48, 8, POINTER);
FIELD(dtrain_op_params, stream_type, 56, 4, INTEGER);
FIELD(dtrain_op_params, priority, 60, 4, INTEGER);
AT_LEAST(dtrain_comm_params, 40);
FIELD(dtrain_comm_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_comm_params, size, 4, 4, INTEGER);
FIELD(dtrain_comm_params, rank, 8, 4, INTEGER);
FIELD(dtrain_comm_params, servers, 12, 4, INTEGER);
FIELD(dtrain_comm_params, timeout_ns, 16, 8, INTEGER);
FIELD(dtrain_comm_params, oob, 24, 8, POINTER);
FIELD(dtrain_comm_params, oob_arg, 32, 8, POINTER);
AT_LEAST(dtrain_table_params, 80);
FIELD(dtrain_table_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_table_params, dtype, 4, 4, INTEGER);
FIELD(dtrain_table_params, length, 8, 8, INTEGER);
FIELD(dtrain_table_params, rule, 16, 4, INTEGER);
FIELD(dtrain_table_params, consistency, 20, 4, INTEGER);
FIELD(dtrain_table_params, staleness, 24, 4, INTEGER);
FIELD(dtrain_table_params, aggregate, 28, 4, INTEGER);
FIELD(dtrain_table_params, learning_rate, 32, 8, REAL);
FIELD(dtrain_table_params, momentum, 40, 8, REAL);
FIELD(dtrain_table_params, beta1, 48, 8, REAL);
FIELD(dtrain_table_params, beta2, 56, 8, REAL);
FIELD(dtrain_table_params, epsilon, 64, 8, REAL);
FIELD(dtrain_table_params, initial, 72, 8, REAL);
AT_LEAST(dtrain_server_params, 40);
FIELD(dtrain_server_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_server_params, size, 4, 4, INTEGER);
FIELD(dtrain_server_params, servers, 8, 4, INTEGER);
FIELD(dtrain_server_params, index, 12, 4, INTEGER);
FIELD(dtrain_server_params, timeout_ns, 16, 8, INTEGER);
FIELD(dtrain_server_params, oob, 24, 8, POINTER);
FIELD(dtrain_server_params, oob_arg, 32, 8, POINTER);
AT_LEAST(dtrain_reader_params, 24);
FIELD(dtrain_reader_params, struct_size, 0, 4, INTEGER);
FIELD(dtrain_reader_params, shard, 4, 4, INTEGER);
FIELD(dtrain_reader_params, shards, 8, 4, INTEGER);
FIELD(dtrain_reader_params, flags, 12, 4, INTEGER);
FIELD(dtrain_reader_params, max_record, 16, 8, INTEGER);
AT_LEAST(dtrain_tp_host, 80);
FIELD(dtrain_tp_host, struct_size, 0, 4, INTEGER);
FIELD(dtrain_tp_host, abi, 4, 4, INTEGER);
FIELD(dtrain_tp_host, self, 8, 8, POINTER);
FIELD(dtrain_tp_host, log, 16, 8, POINTER);
FIELD(dtrain_tp_host, option, 24, 8, POINTER);
FIELD(dtrain_tp_host, fail, 32, 8, POINTER);
FIELD(dtrain_tp_host, now_ns, 40, 8, POINTER);
FIELD(dtrain_tp_host, random, 48, 8, POINTER);
FIELD(dtrain_tp_host, sign, 56, 8, POINTER);
FIELD(dtrain_tp_host, plugin, 64, 8, POINTER);
FIELD(dtrain_tp_host, copy, 72, 8, POINTER);
AT_LEAST(dtrain_tp_attr, 64);
FIELD(dtrain_tp_attr, struct_size, 0, 4, INTEGER);
FIELD(dtrain_tp_attr, max_iov, 4, 4, INTEGER);
FIELD(dtrain_tp_attr, caps, 8, 8, INTEGER);
FIELD(dtrain_tp_attr, max_message, 16, 8, INTEGER);
FIELD(dtrain_tp_attr, eager_limit, 24, 8, INTEGER);
FIELD(dtrain_tp_attr, latency_ns, 32, 8, INTEGER);
FIELD(dtrain_tp_attr, bandwidth_bps, 40, 8, INTEGER);
FIELD(dtrain_tp_attr, address_len, 48, 4, INTEGER);
FIELD(dtrain_tp_attr, rkey_len, 52, 4, INTEGER);
FIELD(dtrain_tp_attr, window_handle_len, 56, 4, INTEGER);
FIELD(dtrain_tp_attr, numa_node, 60, 4, INTEGER);
EXACTLY(dtrain_tp_iov, 24);
FIELD(dtrain_tp_iov, addr, 0, 8, POINTER);
FIELD(dtrain_tp_iov, len, 8, 8, INTEGER);
FIELD(dtrain_tp_iov, mr, 16, 8, POINTER);
EXACTLY(dtrain_tp_done, 48);
FIELD(dtrain_tp_done, cookie, 0, 8, INTEGER);
FIELD(dtrain_tp_done, bytes, 8, 8, INTEGER);
FIELD(dtrain_tp_done, tag, 16, 8, INTEGER);
FIELD(dtrain_tp_done, imm, 24, 8, INTEGER);
FIELD(dtrain_tp_done, status, 32, 4, INTEGER);
FIELD(dtrain_tp_done, kind, 36, 4, INTEGER);
FIELD(dtrain_tp_done, reserved, 40, 8, INTEGER);
AT_LEAST(dtrain_tp_ops, 208);
FIELD(dtrain_tp_ops, struct_size, 0, 4, INTEGER);
FIELD(dtrain_tp_ops, reserved, 4, 4, INTEGER);
FIELD(dtrain_tp_ops, list, 8, 8, POINTER);
FIELD(dtrain_tp_ops, open, 16, 8, POINTER);
FIELD(dtrain_tp_ops, close, 24, 8, POINTER);
FIELD(dtrain_tp_ops, query, 32, 8, POINTER);
FIELD(dtrain_tp_ops, address, 40, 8, POINTER);
FIELD(dtrain_tp_ops, reachable, 48, 8, POINTER);
FIELD(dtrain_tp_ops, connect, 56, 8, POINTER);
FIELD(dtrain_tp_ops, disconnect, 64, 8, POINTER);
FIELD(dtrain_tp_ops, mr_reg, 72, 8, POINTER);
FIELD(dtrain_tp_ops, mr_dereg, 80, 8, POINTER);
FIELD(dtrain_tp_ops, mr_rkey, 88, 8, POINTER);
FIELD(dtrain_tp_ops, send, 96, 8, POINTER);
FIELD(dtrain_tp_ops, recv, 104, 8, POINTER);
FIELD(dtrain_tp_ops, cancel, 112, 8, POINTER);
FIELD(dtrain_tp_ops, purge, 120, 8, POINTER);
FIELD(dtrain_tp_ops, put, 128, 8, POINTER);
FIELD(dtrain_tp_ops, get, 136, 8, POINTER);
FIELD(dtrain_tp_ops, progress, 144, 8, POINTER);
FIELD(dtrain_tp_ops, event_fd, 152, 8, POINTER);
FIELD(dtrain_tp_ops, arm, 160, 8, POINTER);
FIELD(dtrain_tp_ops, window_create, 168, 8, POINTER);
FIELD(dtrain_tp_ops, window_attach, 176, 8, POINTER);
FIELD(dtrain_tp_ops, window_address, 184, 8, POINTER);
FIELD(dtrain_tp_ops, window_ring, 192, 8, POINTER);
FIELD(dtrain_tp_ops, window_free, 200, 8, POINTER);
AT_LEAST(dtrain_tp_plugin, 32);
FIELD(dtrain_tp_plugin, struct_size, 0, 4, INTEGER);
FIELD(dtrain_tp_plugin, abi, 4, 4, INTEGER);
FIELD(dtrain_tp_plugin, name, 8, 8, POINTER);
FIELD(dtrain_tp_plugin, version, 16, 8, POINTER);
FIELD(dtrain_tp_plugin, ops, 24, 8, POINTER);
