// Measures the programs of bin/envtest beside upstream's: from both commands to the first answer, and resident memory of
// both processes together.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '#async/index.ts'
import { ourAssets, withRealAssets } from '#test/clients/envtest-suites.ts'
import { freePort, runCommand, startProcess } from '#test/support/index.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { median, rounded } from './statistics.ts'

const rounds = 5

export const envtest: Measurement = {
  name: 'envtest',
  describes: 'kube-apiserver and etcd for suites of controllers: start and idle memory, ours and upstream',
  async run({ signal }) {
    const ours = await measure(ourAssets, signal)
    const real = await withRealAssets((assets) => measure(assets, signal))
    return {
      ...named('ours', ours),
      ...named('upstream', real),
      'start, ours to upstream': rounded(ours.seconds / real.seconds),
      'memory, ours to upstream': rounded(ours.mib / real.mib),
    }
  },
}

interface Figures {
  readonly seconds: number
  readonly mib: number
}

const named = (who: string, { seconds, mib }: Figures): Numbers => ({
  [`start s, ${who}`]: rounded(seconds),
  [`idle MiB, ${who}`]: rounded(mib),
})

async function measure(assets: string, signal: AbortSignal): Promise<Figures> {
  const all: Figures[] = []
  for (let round = 0; round < rounds; round++) all.push(await once(assets, signal))
  return { seconds: median(all.map(({ seconds }) => seconds)), mib: median(all.map(({ mib }) => mib)) }
}

/** Starts both programs with the flags that envtest gives. */
async function once(assets: string, signal: AbortSignal): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-envtest-'))
  try {
    const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()]
    const etcdUrl = `http://127.0.0.1:${etcdPort}`
    const authority = join(dir, 'ca.crt')
    const key = join(dir, 'sa.key')
    await runCommand('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=ca'],
      ...['-keyout', key, '-out', authority],
    ])
    const began = performance.now()
    await using etcd = await startProcess({
      name: 'etcd',
      command: join(assets, 'etcd'),
      args: [
        ...[`--data-dir=${join(dir, 'etcd')}`, `--listen-client-urls=${etcdUrl}`, `--advertise-client-urls=${etcdUrl}`],
        ...[`--listen-peer-urls=http://127.0.0.1:${peerPort}`, '--unsafe-no-fsync=true'],
      ],
      ready: () => answers(`${etcdUrl}/health`),
    })
    await using server = await startProcess({
      name: 'kube-apiserver',
      command: join(assets, 'kube-apiserver'),
      args: [
        ...[`--etcd-servers=${etcdUrl}`, '--bind-address=127.0.0.1', `--secure-port=${port}`, `--cert-dir=${dir}`],
        ...[`--client-ca-file=${authority}`, '--service-cluster-ip-range=10.0.0.0/24', '--authorization-mode=RBAC'],
        ...[`--service-account-key-file=${key}`, `--service-account-signing-key-file=${key}`],
        ...['--service-account-issuer=https://127.0.0.1/', '--disable-admission-plugins=ServiceAccount'],
      ],
      ready: () => answers(`https://127.0.0.1:${port}/healthz`),
    })
    const seconds = (performance.now() - began) / 1000
    await sleep(5000, signal)
    return { seconds, mib: residentMiB([...withChildren(etcd.pid), ...withChildren(server.pid)]) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function answers(url: string): Promise<boolean> {
  const { code } = await runCommand('curl', ['--silent', '--insecure', '--fail', '--max-time', '1', url], {
    expectCode: 'any',
  })
  return code === 0
}
