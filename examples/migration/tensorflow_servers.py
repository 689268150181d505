"""ClusterSpec, Server.join(), replica_device_setter and SyncReplicasOptimizer, and what they became.

    dtrain-run -n 2 -s 2 -- python3 tensorflow_servers.py
    dtrain-run -n 3 -s 1 -- python3 tensorflow_servers.py --aggregate 2

or with TF_CONFIG, in processes of the types chief, worker and ps.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import sys

import dtrain.tensorflow as dt
from tensorflow_data import check, loss, model, points

parser = argparse.ArgumentParser()
parser.add_argument("--aggregate", type=int,
                    help="replicas_to_aggregate: how many workers make a step; asynchronous without")
options = parser.parse_args()

# cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
# server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
# if job_name == "ps":
#     server.join()
if dt.serve():
    sys.exit()

# optimizer = tf.train.AdamOptimizer(0.01)
# if sync_replicas:
#     optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=..., total_num_replicas=...)
# with tf.device(tf.train.replica_device_setter(cluster=cluster)):
#     ... the model
# The variables of a quorum are together on one server: stop_at() says why.
mode = ({"consistency": "quorum", "quorum": options.aggregate} if options.aggregate
        else {"consistency": "async", "place": "round_robin"})
optimizer = dt.ServerOptimizer("adam", 0.01, **mode)
trained = model()
trained.compile(optimizer=optimizer, loss=loss())

x, y = points(3200, 1 + dt.rank())
if options.aggregate:
    # hooks=[sync_replicas_hook, tf.train.StopAtStepHook(last_step=300)]
    trained.fit(x, y, batch_size=32, epochs=1000, verbose=0, callbacks=[optimizer.stop_at(300)])
else:
    trained.fit(x, y, batch_size=32, epochs=3, verbose=2 if dt.rank() == 0 else 0)
dt.barrier()
optimizer.pull()
check(trained)
print(f"dropped as stale: {optimizer.dropped()}")
