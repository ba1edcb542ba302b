// Measures a start of `kcp apiserver` in front of a host that keeps many Records. They are written directly into its
// etcd: only the start is measured.
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { RecordCodec, defaultNamespacePrefix } from '#store/host/record-codec.ts'
import { Seal } from '#store/seal.ts'
import { encodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { freePort, startCluster, startKcp, waitFor, type Cluster } from '#test/support/index.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const clusterCount = 1000
const objectsEach = 100
/** Length of the value, for stored objects of about 1 KiB. */
const textBytes = 800
/** Puts in one transaction of etcd, which allows 128. */
const batch = 100
const starts = 3
const readyMs = 120_000

/** Time until ready, its CPU time on both sides, and memory. */
export const hostStart: Measurement = {
  name: 'host-start',
  describes: `start of kcp apiserver with ${clusterCount * objectsEach} Records in the host`,
  async run({ signal, say }) {
    await using host = await startCluster({ name: 'benchhost', signal })
    const empty = await startOnce(host)
    await fill(host)
    say(`${clusterCount * objectsEach} Records are there`)
    const full: Start[] = []
    for (let round = 0; round < starts; round++) full.push(await startOnce(host))
    return {
      'seconds until ready without Records': rounded(empty.seconds),
      'seconds until ready': rounded(median(full.map(({ seconds }) => seconds))),
      'CPU seconds of kcp': rounded(median(full.map(({ cpu }) => cpu))),
      'CPU seconds of the host': rounded(median(full.map(({ hostCpu }) => hostCpu))),
      'MiB without Records': rounded(empty.mib),
      'MiB when ready': rounded(median(full.map(({ mib }) => mib))),
    }
  },
}

interface Start {
  readonly seconds: number
  readonly cpu: number
  readonly hostCpu: number
  readonly mib: number
}

async function startOnce(host: Cluster): Promise<Start> {
  const hostPids = [...host.processes.values()].map(({ pid }) => pid)
  const hostCpu = cpuSeconds(hostPids)
  const address = host.hostAddress
  const listening = [
    '--bind-address',
    address,
    '--advertise-address',
    address,
    '--port',
    String(await freePort(address)),
  ]
  const began = performance.now()
  await using kcp = await startKcp(['apiserver', ...listening], { env: { KUBECONFIG: host.kubeconfig } })
  await waitFor(() => kcp.log().includes('kcp apiserver is ready'), {
    what: 'kcp to be ready',
    deadlineMs: readyMs,
  }).catch((cause: unknown) => {
    throw new Error(`kcp is not ready; it printed: ${kcp.log().slice(-2000)}`, { cause })
  })
  const seconds = (performance.now() - began) / 1000
  const pids = withChildren(kcp.pid)
  return { seconds, cpu: cpuSeconds(pids), hostCpu: cpuSeconds(hostPids) - hostCpu, mib: residentMiB(pids) }
}

async function fill(host: Cluster): Promise<void> {
  const codec = new RecordCodec({
    namespacePrefix: defaultNamespacePrefix,
    sealResource: () => false,
    seal: new Seal(randomBytes(32)),
    requireValue: () => undefined,
  })
  const etcd = etcdOf(host)
  const puts: object[] = []
  const send = async (): Promise<void> => {
    const body = JSON.stringify({ success: puts.splice(0).map((requestPut) => ({ requestPut })) })
    const response = await fetch(`${etcd}/v3/kv/txn`, { method: 'POST', body })
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${await response.text()}`)
  }
  for (let n = 0; n < clusterCount; n++) {
    const cluster = clusterIdOf(`bench-${n}`)
    for (let i = 0; i < objectsEach; i++) {
      const name = `object-${i}`
      const creationTimestamp = '2026-01-01T00:00:00Z'
      const value = encodeObject({
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: { name, namespace: 'default', uid: randomUUID(), creationTimestamp },
        data: { text: 'x'.repeat(textBytes) },
      })
      const record = codec.encode({ cluster, resource: 'configmaps', namespace: 'default', name }, value)
      const metadata = { ...record.metadata, uid: randomUUID(), generation: 1, creationTimestamp }
      const key = `/registry/storage.kcp.dev/records/${metadata.namespace}/${metadata.name}`
      puts.push({ key: base64(key), value: base64(JSON.stringify({ ...record, metadata })) })
      if (puts.length === batch) await send()
    }
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** The address of its etcd, which asks for no credentials. */
function etcdOf({ processes }: Cluster): string {
  const args = readFileSync(`/proc/${processes.get('etcd')?.pid}/cmdline`, 'utf8').split('\0')
  const flag = '--listen-client-urls='
  return args.find((arg) => arg.startsWith(flag))?.slice(flag.length) ?? ''
}
