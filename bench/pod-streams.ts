// Compares exec, logs and port-forward through a logical cluster with the same at the member's own kube-apiserver, in
// alternating rounds.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { ensurePrograms, kubectlEnvironment, startProcess, waitFor } from '#test/support/index.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { execOnce, openExec, openLog } from './pod-exec.ts'
import { cpuSeconds, residentMiB } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'
import { servedPath, startStreamPod, type StreamPod, type Way } from './stream-pod.ts'

const MiB = 2 ** 20
const streamMiB = 128
const logMiB = 100
const rounds = 3
const execs = 100
const followedLines = 200
const lineIntervalMs = 20
/** Streams of each kind whose client reads nothing. */
const stalled = 20
const stalledMs = 10_000

/** The value of kubectl's variables `KUBECTL_*_WEBSOCKETS` that makes it use the protocol. */
const protocols = { WebSocket: 'true', SPDY: 'false' } as const
type Protocol = keyof typeof protocols

export const podStreams: Measurement = {
  name: 'pod-streams',
  describes: `exec, logs and port-forward of a pod on a real node, through a logical cluster and directly`,
  async run({ signal, say }) {
    await using lab = await startStreamPod({ logBytes: logMiB * MiB, fileBytes: streamMiB * MiB }, signal)
    say('the pod runs')
    const bench = new Bench(lab, signal, say)
    const numbers: Record<string, number> = {}
    for (const protocol of ['WebSocket', 'SPDY'] as const) {
      const out = ['exec', '-c', 'tools', '--', 'head', '-c', String(streamMiB * MiB), '/dev/zero']
      Object.assign(
        numbers,
        await bench.throughput(`exec stdout, ${protocol}`, streamMiB, bench.reading(out, protocol)),
      )
      Object.assign(numbers, await bench.throughput(`exec stdin, ${protocol}`, streamMiB, bench.writing(protocol)))
      Object.assign(numbers, await bench.throughput(`port-forward, ${protocol}`, streamMiB, bench.forwarding(protocol)))
    }
    const logs = bench.reading(['logs', '-c', 'log', '--tail=-1'], 'WebSocket')
    Object.assign(numbers, await bench.throughput('logs', logMiB, logs))
    Object.assign(numbers, await bench.shortExecs(), await bench.followed(), await bench.unread())
    return numbers
  },
}

/** Streams everything once, and resolves with the seconds that the bytes took. */
type Stream = (way: Way) => Promise<number>

class Bench {
  readonly #lab: StreamPod
  readonly #signal: AbortSignal
  readonly #say: (line: string) => void
  #started = 0

  constructor(lab: StreamPod, signal: AbortSignal, say: (line: string) => void) {
    this.#lab = lab
    this.#signal = signal
    this.#say = say
  }

  async throughput(what: string, mebibytes: number, stream: Stream): Promise<Numbers> {
    const { ways, pids } = this.#lab
    const rates = { kcp: [] as number[], direct: [] as number[] }
    const cpu: number[] = []
    for (let round = 0; round < rounds; round++)
      for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
        const before = cpuSeconds(pids)
        rates[way.name].push(mebibytes / (await stream(way)))
        if (way.name === 'kcp') cpu.push(((cpuSeconds(pids) - before) * 1024) / mebibytes)
      }
    const [through, direct] = [median(rates.kcp), median(rates.direct)]
    const ratio = rounded(through / direct)
    this.#say(
      `${what}: ${rounded(through)} MiB/s, directly ${rounded(direct)}, ${ratio} times; CPU-s per GiB: ${cpu.map(rounded).join()}`,
    )
    return {
      [`${what}: MiB/s`]: rounded(through),
      [`${what}: MiB/s directly`]: rounded(direct),
      [`${what}: ratio`]: rounded(through / direct),
      [`${what}: CPU-s of kcp per GiB`]: rounded(median(cpu)),
    }
  }

  /** Streams the output of kubectl to a local `wc`, which counts the bytes. */
  reading(args: readonly string[], protocol: Protocol): Stream {
    return (way) => this.#piped(way, protocol, '"$@" | wc -c', [...podArguments(args, way)])
  }

  /** Streams zeros to the standard input of `wc` in the pod, which counts the bytes. */
  writing(protocol: Protocol): Stream {
    const script = `head -c ${streamMiB * MiB} /dev/zero | "$@"`
    const args = ['exec', '-i', '-c', 'tools', '--', 'wc', '-c']
    return (way) => this.#piped(way, protocol, script, podArguments(args, way))
  }

  async #piped(way: Way, protocol: Protocol, script: string, args: readonly string[]): Promise<number> {
    const { kubectl } = await ensurePrograms(['kubectl'])
    const began = performance.now()
    const child = spawn('/bin/sh', ['-c', script, 'sh', kubectl, '--kubeconfig', way.kubeconfig, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...kubectlEnvironment(way.kubeconfig), ...chosen(protocol) },
      signal: this.#signal,
    })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await once(child, 'close')
    if (Number(printed) < logMiB * MiB) throw new Error(`only ${printed.trim()} bytes came through ${args.join(' ')}`)
    return (performance.now() - began) / 1000
  }

  /** Downloads a file that the pod serves over HTTP, through a forwarded port. */
  forwarding(protocol: Protocol): Stream {
    return async (way) => {
      const { kubectl } = await ensurePrograms(['kubectl'])
      const args = ['port-forward', '-n', way.namespace, `pod/${way.pod}`, ':80']
      await using forward = await startProcess({
        name: `bench-forward-${++this.#started}`,
        command: kubectl,
        args: ['--kubeconfig', way.kubeconfig, ...args],
        env: { ...kubectlEnvironment(way.kubeconfig), ...chosen(protocol) },
      })
      const found = (): string | undefined => /127\.0\.0\.1:(\d+)/.exec(forward.log())?.[1]
      const port = await waitFor(found, { what: 'the port to be forwarded', deadlineMs: 20_000 })
      const began = performance.now()
      const bytes = await download(`http://127.0.0.1:${port}${servedPath}`)
      if (bytes !== streamMiB * MiB) throw new Error(`${bytes} bytes came through the forwarded port`)
      return (performance.now() - began) / 1000
    }
  }

  async shortExecs(): Promise<Numbers> {
    const elapsed = { kcp: [] as number[], direct: [] as number[] }
    for (let n = -5; n < execs; n++)
      for (const way of this.#lab.ways) {
        const began = performance.now()
        await execOnce(way, ['true'], this.#signal)
        if (n >= 0) elapsed[way.name].push(performance.now() - began)
      }
    return latencies('exec of true', elapsed)
  }

  /**
   * Measures the time from sending a line to the container, which writes it to its log, until the line arrives at the
   * two clients that follow the log.
   */
  async followed(): Promise<Numbers> {
    const { ways } = this.#lab
    const life = new AbortController()
    const signal = AbortSignal.any([life.signal, this.#signal])
    const written: number[] = []
    const lags = { kcp: new Map<number, number>(), direct: new Map<number, number>() }
    const followers = ways.map(async (way) => {
      let text = ''
      for await (const chunk of await openLog(way, 'container=tools&follow=true&tailLines=0', signal)) {
        const now = performance.now()
        text += Buffer.from(chunk).toString()
        const end = text.lastIndexOf('\n') + 1
        for (const [, line] of text.slice(0, end).matchAll(/^line (\d+)$/gm))
          lags[way.name].set(Number(line), now - (written[Number(line)] ?? Number.NaN))
        text = text.slice(end)
      }
    })
    const ended = Promise.allSettled(followers)
    const { kubectl } = await ensurePrograms(['kubectl'])
    const { kubeconfig, namespace, pod } = ways[1]
    const command = ['sh', '-c', 'while read -r line; do echo "$line" > /proc/1/fd/1; done']
    const writer = spawn(
      kubectl,
      ['--kubeconfig', kubeconfig, 'exec', '-i', '-n', namespace, pod, '-c', 'tools', '--', ...command],
      { stdio: ['pipe', 'inherit', 'inherit'], env: { ...process.env, ...kubectlEnvironment(kubeconfig) } },
    )
    const write = (): void => {
      writer.stdin.write(`line ${written.length}\n`)
      written.push(performance.now())
    }
    const both = (count: number): boolean => Object.values(lags).every(({ size }) => size >= count)
    try {
      // Until the writer is connected and both follow.
      await waitFor(() => both(1) || write(), { what: 'a followed line', deadlineMs: 60_000, intervalMs: 500 })
      const first = written.length
      for (let line = 0; line < followedLines; line++) {
        write()
        await delay(lineIntervalMs, undefined, { signal })
      }
      const last = written.length - 1
      const haveAll = (): boolean => Object.values(lags).every((seen) => seen.has(last))
      await waitFor(haveAll, { what: 'the last of the followed lines', deadlineMs: 60_000 })
      const measured = (seen: ReadonlyMap<number, number>): number[] =>
        [...seen].flatMap(([line, lag]) => (line >= first ? [lag] : []))
      return latencies('a followed line of a log', { kcp: measured(lags.kcp), direct: measured(lags.direct) })
    } finally {
      writer.stdin.end()
      life.abort()
      await ended
    }
  }

  /** Memory of kcp while clients read nothing of what pods send. */
  async unread(): Promise<Numbers> {
    const [way] = this.#lab.ways
    const numbers: Record<string, number> = {}
    const kinds = {
      exec: (signal: AbortSignal) => openExec(way, ['yes'], signal),
      logs: (signal: AbortSignal) => openLog(way, 'container=log', signal),
    }
    for (const [kind, open] of Object.entries(kinds)) {
      const before = residentMiB(this.#lab.pids)
      const life = new AbortController()
      const streams = await Promise.all(Array.from({ length: stalled }, () => open(life.signal)))
      await delay(stalledMs, undefined, { signal: this.#signal })
      const grown = residentMiB(this.#lab.pids) - before
      this.#say(`${streams.length} unread streams of ${kind}: ${rounded(grown)} MiB more`)
      numbers[`${stalled} unread streams of ${kind}: MiB more after ${stalledMs / 1000} s`] = rounded(grown)
      life.abort()
    }
    return numbers
  }
}

function podArguments([verb = '', ...args]: readonly string[], { namespace, pod }: Way): string[] {
  return [verb, '-n', namespace, pod, ...args]
}

function chosen(protocol: Protocol): Record<string, string> {
  const value = protocols[protocol]
  return { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: value, KUBECTL_PORT_FORWARD_WEBSOCKETS: value }
}

function latencies(what: string, { kcp, direct }: Readonly<Record<Way['name'], readonly number[]>>): Numbers {
  return {
    [`${what}: p50 ms`]: rounded(median(kcp)),
    [`${what}: p99 ms`]: rounded(quantile(kcp, 0.99)),
    [`${what}: p50 ms directly`]: rounded(median(direct)),
    [`${what}: p99 ms directly`]: rounded(quantile(direct, 0.99)),
  }
}

function download(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      response.on('end', () => resolve(bytes))
      response.on('error', reject)
    }).on('error', reject)
  })
}
