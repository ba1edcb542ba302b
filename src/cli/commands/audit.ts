// `kcp audit [NAME]`: the audit events that a logical cluster keeps for its users (spec.audit.readable).
import { setTimeout as delay } from 'node:timers/promises'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { fromStatus, isStatusError, type Status } from '#apimachinery/status/index.ts'
import { httpTransport, linesOf, loadKubeconfig, type Transport } from '#client/index.ts'
import { auditPath, auditPositionAnnotation } from '#crds/index.ts'
import { basePath } from '#cli/across/direct.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { clusterOf, logicalClusterOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { printable } from './output.ts'
import { sinceMs } from './usage.ts'

interface Flags extends InstallationFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly follow?: boolean
  readonly user?: string
  readonly verb?: readonly string[]
  readonly resource?: string
  readonly since?: string
  readonly output: 'table' | 'json'
}

/** The fields of an event that the command reads. */
interface AuditEvent {
  readonly stage?: string
  readonly verb?: string
  readonly requestURI?: string
  readonly user?: { readonly username?: string }
  readonly impersonatedUser?: { readonly username?: string }
  readonly objectRef?: {
    readonly resource?: string
    readonly apiGroup?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp?: string
  readonly stageTimestamp?: string
  readonly annotations?: Readonly<Record<string, string>>
}

const maxLineBytes = 1024 * 1024
const againMs = 1000
const widths = [27, 18, 16, 4, 24]

/** Runs the command. */
export async function run(name: string | undefined, flags: Flags): Promise<void> {
  const signal = processSignal()
  const from = flags.since === undefined ? -Infinity : sinceMs(flags.since, Date.now())
  await using log = await openLog(name, flags, signal)
  const wanted = filterOf(flags, from)
  let after: string | undefined
  let hasHead = flags.output === 'json'
  const showHead = (): void => {
    if (!hasHead) process.stdout.write(padded(['TIME', 'USER', 'VERB', 'CODE', 'OBJECT'], 'REQUEST'))
    hasHead = true
  }
  const show = (line: string, event: AuditEvent): void => {
    after = event.annotations?.[auditPositionAnnotation] ?? after
    showHead()
    if (wanted(event)) process.stdout.write(flags.output === 'json' ? `${line}\n` : rowOf(event))
  }
  for (;;) {
    try {
      await read(log, { after, follow: flags.follow === true }, show, signal)
      showHead()
      if (flags.follow !== true) return
    } catch (error) {
      if (signal.aborted) return
      if (flags.follow !== true || after === undefined) throw error
      // The server has restarted, or more events came than it keeps.
      if (isStatusError(error, 'Expired')) {
        console.error('some events are gone; the ones that are left follow')
        after = undefined
      } else if (!isStatusError(error, 'ServiceUnavailable')) throw error
    }
    await delay(againMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
  }
}

interface OpenLog extends AsyncDisposable {
  readonly transport: Transport
  readonly path: string
}

/**
 * Opens the log of a logical cluster. With `--kubeconfig`, it is the one that the file names, read as the user of the
 * file; else it is `name` or that of the current context, read as an admin of the installation.
 */
async function openLog(name: string | undefined, flags: Flags, signal: AbortSignal): Promise<OpenLog> {
  const { kubeconfig, context } = flags
  if (kubeconfig !== undefined) {
    const options = { trusted: true, ...(context !== undefined && { context }) }
    const transport = httpTransport(await loadKubeconfig({ file: kubeconfig }, options))
    return { transport, path: auditPath, [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose]() }
  }
  await using stack = new AsyncDisposableStack()
  const cluster = await clusterOf(name === undefined ? {} : { cluster: name })
  const installation = stack.use(await openInstallation(flags, signal))
  await logicalClusterOf(installation, cluster, signal)
  const transport = stack.use(await openDirect(installation))
  const owned = stack.move()
  return { transport, path: `${basePath(cluster)}${auditPath}`, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Reads the log once. Rejects with StatusError if the server refuses or has lost events. */
async function read(
  { transport, path }: OpenLog,
  { after, follow }: { readonly after: string | undefined; readonly follow: boolean },
  show: (line: string, event: AuditEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const query = new URLSearchParams({ ...(after !== undefined && { after }), ...(follow && { follow: 'true' }) })
  const headers = { accept: 'application/json' }
  const response = await transport.request({ method: 'GET', path: `${path}?${query.toString()}`, headers, signal })
  for await (const line of linesOf(response.body, { maxBytes: maxLineBytes })) {
    const event = parseJsonText(line) as unknown as AuditEvent & { readonly kind?: string }
    if (event.kind === 'Status') throw fromStatus(event as unknown as Status)
    show(line, event)
  }
}

function filterOf({ user, verb = [], resource }: Flags, fromMs: number): (event: AuditEvent) => boolean {
  const names = resource?.split(/[./]/) ?? []
  return (event) => {
    const { username } = event.impersonatedUser ?? event.user ?? {}
    const { resource: plural, apiGroup, subresource } = event.objectRef ?? {}
    const parts = [plural, ...(subresource === undefined ? [] : [subresource]), ...(apiGroup?.split('.') ?? [])]
    return (
      (user === undefined || user === username || user === event.user?.username) &&
      (verb.length === 0 || verb.includes(event.verb ?? '')) &&
      (resource === undefined || names.every((part, i) => parts[i] === part)) &&
      !(Date.parse(event.stageTimestamp ?? '') < fromMs)
    )
  }
}

function rowOf(event: AuditEvent): string {
  const { resource = '', subresource = '', namespace = '', name = '' } = event.objectRef ?? {}
  const { user, impersonatedUser, responseStatus } = event
  const who = impersonatedUser === undefined ? user?.username : `${impersonatedUser.username} (${user?.username})`
  const what = [resource, name, subresource].filter(Boolean).join('/')
  const cells = [
    event.requestReceivedTimestamp ?? '',
    who ?? '',
    event.verb ?? '',
    responseStatus?.code === undefined ? (event.stage === 'RequestReceived' ? '...' : '') : String(responseStatus.code),
    namespace === '' ? what : `${namespace}/${what}`,
  ]
  return padded(cells.map(printable), printable(event.requestURI ?? ''))
}

/** Columns of fixed widths: rows are printed as they come. */
function padded(cells: readonly string[], last: string): string {
  return `${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}  ${last}\n`
}
