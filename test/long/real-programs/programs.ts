// Real servers, and what is asked of them: the same of those that a tenant runs and of those that the same manifest
// made in a member.

/** A command in a pod of the application; its output must be the same on both sides. */
export interface Question {
  /** As kubectl exec takes it: a pod, or `deploy/NAME`. */
  readonly pod: string
  readonly script: string
  /** What the output must contain. */
  readonly contains: string
}

export interface RealProgram {
  /** Of its manifest, and of its namespace. */
  readonly name: string
  readonly title: string
  /** In the order of their dependencies, such as `statefulset/pg`. */
  readonly workloads: readonly string[]
  /** Asked once, at first: they store something. */
  readonly first: readonly Question[]
  /** Asked after each step: nothing is lost. */
  readonly always: readonly Question[]
  /** The workload that is scaled, from how many replicas to how many, and back. */
  readonly scale: { readonly workload: string; readonly from: number; readonly to: number }
  /** Why it does not move to another member. Absent: it does. */
  readonly staysBecause?: string
}

const psql = (host: string, statement: string): string =>
  `/usr/lib/postgresql/15/bin/psql -h ${host} -U postgres -At -c "${statement}"`
const etcdctl =
  'etcdctl --command-timeout=20s --endpoints=http://etcd-0.etcd:2379,http://etcd-1.etcd:2379,http://etcd-2.etcd:2379'
const master = 'redis-cli -h sentinel -p 26379 sentinel get-master-addr-by-name main | head -1'
/** Until it succeeds, for a minute: an election or a failover takes some seconds. */
const until = (script: string): string => `for i in $(seq 60); do ${script} && exit 0; sleep 1; done; exit 1`
/** A client in Java of its own is slow to start: the four letters of ZooKeeper's own protocol tell the state. */
const zooKeeper = (host: string, statement: string): string =>
  `java -cp '/usr/share/java/*' org.apache.zookeeper.ZooKeeperMain -server ${host}:2181 ${statement} 2>/dev/null | tail -1`

export const realPrograms: readonly RealProgram[] = [
  {
    name: 'nginx',
    title: 'nginx with a resolver',
    workloads: ['deployment/backend', 'deployment/front'],
    first: [],
    always: [
      {
        pod: 'deploy/front',
        script: until('curl -sf http://front/ | grep -o "hello from backend"'),
        contains: 'hello from backend',
      },
      {
        pod: 'deploy/backend',
        script:
          'for name in front front.nginx front.nginx.svc front.nginx.svc.cluster.local; do getent hosts $name > /dev/null || exit 1; done && echo all resolve',
        contains: 'all resolve',
      },
    ],
    scale: { workload: 'deployment/backend', from: 2, to: 3 },
  },
  {
    name: 'postgres',
    title: 'PostgreSQL with a replica',
    workloads: ['statefulset/pg', 'statefulset/replica'],
    first: [
      {
        pod: 'pg-0',
        script: psql('pg-0.pg', 'create table t (n int); insert into t values (42)'),
        contains: 'INSERT 0 1',
      },
    ],
    always: [
      { pod: 'replica-0', script: psql('pg', 'select n from t'), contains: '42' },
      { pod: 'pg-0', script: until(`test "$(${psql('replica', 'select n from t')})" = 42 && echo 42`), contains: '42' },
      { pod: 'pg-0', script: 'hostname -f', contains: 'pg-0.pg.' },
    ],
    scale: { workload: 'statefulset/replica', from: 1, to: 2 },
    staysBecause: 'volume',
  },
  {
    name: 'redis',
    title: 'Redis with Sentinel',
    workloads: ['statefulset/redis', 'deployment/sentinel'],
    first: [{ pod: 'redis-0', script: until(`redis-cli -h $(${master}) set a 42 | grep OK`), contains: 'OK' }],
    always: [
      { pod: 'deploy/sentinel', script: until(`redis-cli -h $(${master}) get a | grep -x 42`), contains: '42' },
      { pod: 'redis-1', script: until('redis-cli get a | grep -x 42'), contains: '42' },
      { pod: 'redis-2', script: 'hostname -f', contains: 'redis-2.redis.' },
    ],
    scale: { workload: 'statefulset/redis', from: 3, to: 4 },
  },
  {
    name: 'etcd',
    title: 'etcd with three members',
    workloads: ['statefulset/etcd'],
    first: [{ pod: 'etcd-0', script: until(`${etcdctl} put a 42`), contains: 'OK' }],
    always: [
      { pod: 'etcd-2', script: until(`${etcdctl} get a --print-value-only`), contains: '42' },
      {
        pod: 'etcd-1',
        script: until(`${etcdctl} endpoint health 2>&1 | grep -c 'is healthy' | grep -x 3`),
        contains: '3',
      },
    ],
    scale: { workload: 'statefulset/etcd', from: 3, to: 3 },
    staysBecause: 'volume',
  },
  {
    name: 'zookeeper',
    title: 'ZooKeeper with a quorum of three',
    workloads: ['statefulset/zk'],
    first: [
      {
        pod: 'zk-0',
        script: until(
          `${zooKeeper('zk-1.zk', 'create /a 42')} | grep -q a; ${zooKeeper('zk-2.zk', 'get /a')} | grep -x 42`,
        ),
        contains: '42',
      },
    ],
    always: [
      { pod: 'zk-1', script: until(`${zooKeeper('zk-0.zk', 'get /a')} | grep -x 42`), contains: '42' },
      {
        pod: 'zk-2',
        script: until(
          'for i in 0 1 2; do echo srvr | nc -w 2 zk-$i.zk 2181 | grep ^Mode; done | sort | uniq -c | tr -s " " | tr "\\n" ";" | grep "2 Mode: follower; 1 Mode: leader"',
        ),
        contains: '1 Mode: leader',
      },
      { pod: 'zk-0', script: 'hostname -f', contains: 'zk-0.zk.' },
    ],
    scale: { workload: 'statefulset/zk', from: 3, to: 3 },
  },
  {
    name: 'rabbitmq',
    title: 'RabbitMQ, whose node has the name of its pod',
    workloads: ['statefulset/rabbit'],
    first: [],
    always: [
      {
        pod: 'rabbit-0',
        script: until(
          'RABBITMQ_NODENAME=rabbit@$(hostname -f) bash -c "rabbitmqctl await_startup >/dev/null && rabbitmqctl eval \'node().\'"',
        ),
        contains: 'rabbit@rabbit-0.rabbit.',
      },
    ],
    scale: { workload: 'statefulset/rabbit', from: 1, to: 1 },
    staysBecause: 'volume',
  },
  {
    name: 'mariadb',
    title: 'MariaDB',
    workloads: ['statefulset/db'],
    first: [
      {
        pod: 'db-0',
        script:
          'mariadb -u root -h 127.0.0.1 -e "create user app; grant all on *.* to app"; mariadb -u app -h db -e "create database d; create table d.t (n int); insert into d.t values (42); select * from d.t"',
        contains: '42',
      },
    ],
    always: [{ pod: 'db-0', script: until('mariadb -u app -h db -Ne "select n from d.t"'), contains: '42' }],
    scale: { workload: 'statefulset/db', from: 1, to: 1 },
    staysBecause: 'volume',
  },
  {
    name: 'prometheus',
    title: 'Prometheus, which finds its targets by DNS',
    workloads: ['deployment/prometheus'],
    first: [],
    always: [
      {
        pod: 'deploy/prometheus',
        script: until(
          `curl -sG http://prometheus:9090/api/v1/query --data-urlencode 'query=max by (job) (up == 1)' | grep -o '{"job":"pods"}' | head -1 | grep pods`,
        ),
        contains: '"job":"pods"',
      },
    ],
    scale: { workload: 'deployment/prometheus', from: 1, to: 2 },
  },
  {
    name: 'nats',
    title: 'NATS, a log of three servers',
    workloads: ['statefulset/nats'],
    first: [],
    always: [
      {
        pod: 'nats-0',
        script: until('curl -s http://nats-1.nats:8222/jsz | tr -d " \\n" | grep -o \'"cluster_size":3\''),
        contains: '"cluster_size":3',
      },
      {
        pod: 'nats-2',
        script: until(
          'curl -sf "http://nats-0.nats:8222/healthz?js-enabled-only=false" | tr -d " \\n" | grep -o \'"status":"ok"\'',
        ),
        contains: 'ok',
      },
    ],
    scale: { workload: 'statefulset/nats', from: 3, to: 3 },
  },
  {
    name: 'haproxy',
    title: 'HAProxy, which finds its servers by DNS',
    workloads: ['deployment/web', 'deployment/haproxy'],
    first: [],
    always: [{ pod: 'deploy/web', script: until('curl -sf http://haproxy:8000/ | grep -x web'), contains: 'web' }],
    scale: { workload: 'deployment/web', from: 2, to: 4 },
  },
  {
    name: 'memcached',
    title: 'memcached',
    workloads: ['deployment/memcached'],
    first: [],
    always: [
      {
        pod: 'deploy/memcached',
        script: until(
          'printf "set a 0 0 2\\r\\n42\\r\\nget a\\r\\nquit\\r\\n" | nc -w 5 memcached 11211 | tr -d "\\r" | grep -x 42',
        ),
        contains: '42',
      },
    ],
    scale: { workload: 'deployment/memcached', from: 1, to: 1 },
  },
  {
    name: 'mosquitto',
    title: 'Mosquitto',
    workloads: ['deployment/mosquitto'],
    first: [],
    always: [
      {
        pod: 'deploy/mosquitto',
        script: until(
          'timeout 20 mosquitto_pub -h mosquitto -t a -m 42 -r && timeout 20 mosquitto_sub -h mosquitto.mosquitto.svc.cluster.local -t a -C 1',
        ),
        contains: '42',
      },
    ],
    scale: { workload: 'deployment/mosquitto', from: 1, to: 1 },
  },
]
