// Answers to `kubectl logs`.
import { badRequest } from '#apimachinery/status/index.ts'
import type { PodRun } from '#simulation/nodes/pod-run.ts'
import type { LogLine } from '#simulation/runtime/log-buffer.ts'

/** The options of the query. */
interface LogOptions {
  readonly follow: boolean
  readonly timestamps: boolean
  readonly sinceMs: number
  readonly tail: number
  readonly limitBytes: number
}

/** The lines of a container. Throws 400 in kubelet's words if it has not started. */
export function readLog(run: PodRun, query: URLSearchParams, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const name = query.get('container') ?? run.containers.find(({ role }) => role === 'main')?.container.name ?? ''
  const found = run.container(name)
  const { name: podName = '' } = run.pod.metadata
  if (found === undefined) throw badRequest(`container ${name} is not valid for pod ${podName}`)
  const isPrevious = query.get('previous') === 'true'
  if (isPrevious && found.previousLog === undefined)
    throw badRequest(`previous terminated container "${name}" in pod "${podName}" not found`)
  const log = isPrevious ? found.previousLog : found.log
  if (log === undefined || !found.hasStarted) {
    const waiting = found.status(Date.now(), 'ContainerCreating').state.waiting
    throw badRequest(`container "${name}" in pod "${podName}" is waiting to start: ${waitingWords(waiting?.reason)}`)
  }
  const options = optionsOf(query)
  const following = options.follow ? log.follow(signal) : undefined
  return linesOf(selected(log.lines, options), following, options)
}

function waitingWords(reason = 'ContainerCreating'): string {
  return reason === 'ImagePullBackOff' || reason === 'ErrImagePull' ? 'trying and failing to pull image' : reason
}

function optionsOf(query: URLSearchParams): LogOptions {
  const seconds = query.get('sinceSeconds')
  const since = query.get('sinceTime')
  const tail = query.get('tailLines')
  const limit = query.get('limitBytes')
  return {
    follow: query.get('follow') === 'true',
    timestamps: query.get('timestamps') === 'true',
    sinceMs: seconds !== null ? Date.now() - Number(seconds) * 1000 : since !== null ? Date.parse(since) : 0,
    tail: tail === null ? Infinity : Number(tail),
    limitBytes: limit === null ? Infinity : Number(limit),
  }
}

function selected(lines: readonly LogLine[], { sinceMs, tail }: LogOptions): readonly LogLine[] {
  const recent = lines.filter(({ atMs }) => atMs >= sinceMs)
  return tail === Infinity ? recent : tail === 0 ? [] : recent.slice(-tail)
}

async function* linesOf(
  kept: readonly LogLine[],
  following: AsyncGenerator<LogLine> | undefined,
  { timestamps, limitBytes }: LogOptions,
): AsyncGenerator<Uint8Array> {
  let left = limitBytes
  const encode = ({ atMs, text }: LogLine): Uint8Array => {
    const bytes = Buffer.from(`${timestamps ? `${new Date(atMs).toISOString()} ` : ''}${text}\n`).subarray(
      0,
      Math.max(0, left),
    )
    left -= bytes.length
    return bytes
  }
  try {
    for (const line of kept) if (left > 0) yield encode(line)
    for await (const line of following ?? []) {
      if (left <= 0) return
      yield encode(line)
    }
  } finally {
    await following?.return(undefined)
  }
}
