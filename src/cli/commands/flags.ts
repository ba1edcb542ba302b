// Flags that several commands share, and parsers of their values.
import { InvalidArgumentError, Option, type Command } from 'commander'
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { join, parse } from 'node:path'
import { tryQuantity } from '#apimachinery/quantity/index.ts'
import type { AuditLogOptions } from '#cli/roles/audit-log.ts'
import type { ConsoleSettings } from '#cli/roles/console.ts'
import { defaultAuditWebhook, defaultVolumeMoveLimits, maxTokenMs, type VolumeMoveLimits } from '#crds/index.ts'
import { isCidr, type AddressPolicyOptions } from '#network/egress/index.ts'
import {
  containerLimit,
  containerMemory,
  type Logger,
  type LogLevel,
  type Metrics,
  openTracer,
} from '#telemetry/index.ts'

/** The flag values as commander passes them. */
export interface StorageFlags {
  readonly storagePerCluster: number
  readonly eventTtl: number
  readonly sharedApis: boolean
  readonly usageEvery: number
}

/** The same values as options of the roles. */
interface StorageOptions {
  /** Storage limit of one logical cluster, in bytes; absent: no limit. */
  readonly storageBytes?: number
  /** Lifetime of an Event after its last write, in milliseconds. */
  readonly eventTtlMs?: number
  /** False: logical clusters do not serve apis.kcp.io. */
  readonly sharedApis: boolean
  /** Milliseconds between two writes of the rows of usage; 0: none are kept. */
  readonly usageEveryMs: number
}

/** Adds `--storage-per-cluster`, `--event-ttl`, `--usage-every` and `--no-shared-apis`. */
export function withStorageFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--storage-per-cluster <MiB>',
        'how much one logical cluster may store, where an object counts half a KiB more than its size; above it creations ' +
          'are refused (403) and other requests still work; 0: no limit',
      )
        .argParser(parseCount)
        .default(defaultPerCluster(), '1024, at most half the memory of the container'),
    )
    .addOption(
      new Option('--event-ttl <duration>', 'how long an Event is kept after it was last written: 1h, 90m, 1h30m, 45s')
        .argParser(parseDuration)
        .default(60 * 60_000, '1h'),
    )
    .option(
      '--usage-every <seconds>',
      'how often the rows that kcp usage shows are saved, and so what a crash may lose of them; 0: none are kept',
      parseCount,
      60,
    )
    .option('--no-shared-apis', 'do not serve the group apis.kcp.io (APIExport, APIBinding) in logical clusters')
}

/**
 * The default of `--storage-per-cluster`, in MiB. Half of the memory at most, because the content of a logical cluster
 * is in memory while the logical cluster is used.
 */
function defaultPerCluster(): number {
  return Math.min(1024, Math.floor(containerMemory() / 2 / 1024 / 1024))
}

/** Converts the flag values to options. */
export function storageOf({ storagePerCluster, eventTtl, sharedApis, usageEvery }: StorageFlags): StorageOptions {
  const bound = storagePerCluster === 0 ? {} : { storageBytes: storagePerCluster * 1024 * 1024 }
  return { ...bound, eventTtlMs: eventTtl, sharedApis, usageEveryMs: usageEvery * 1000 }
}

const maxMs = 30 * 24 * 60 * 60_000

/** Parses a duration in the form of Kubernetes' flags, such as 1h30m, to milliseconds. Throws InvalidArgumentError. */
function parseDuration(text: string): number {
  const [, hours = '0', minutes = '0', seconds = '0'] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text) ?? []
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
  if (ms === 0 || ms > maxMs)
    throw new InvalidArgumentError('it must be a duration above zero, at most 720h: 1h30m, 45s')
  return ms
}

/** Parses the life of a token to milliseconds. Throws InvalidArgumentError above 24 h. */
export function parseTokenTtl(text: string): number {
  const ms = parseDuration(text)
  if (ms > maxTokenMs) throw new InvalidArgumentError('a token lives for 24h at most')
  return ms
}

/** The flag values as commander passes them. */
export interface AuditFlags {
  readonly auditPolicyFile?: string
  readonly auditLog?: string
  readonly auditLogPath?: string
  readonly auditLogMaxsize: number
  readonly auditLogMaxbackup: number
  readonly auditLogMaxage: number
  readonly auditLogTruncateEnabled?: boolean
  readonly auditLogTruncateMaxEventSize: number
  readonly auditWebhookConfigFile?: string
  readonly auditWebhookInitialBackoff: number
  readonly auditWebhookBatchBufferSize: number
  readonly auditWebhookBatchMaxSize: number
  readonly auditWebhookBatchMaxWait: number
  readonly auditWebhookBatchThrottleEnable: boolean
  readonly auditWebhookBatchThrottleQps: number
  readonly auditWebhookBatchThrottleBurst: number
  readonly auditWebhookTruncateEnabled?: boolean
  readonly auditWebhookTruncateMaxBatchSize: number
  readonly auditWebhookTruncateMaxEventSize: number
}

const dayMs = 24 * 60 * 60_000
/** The default of the flags about the size of an event, as in kube-apiserver. */
const maxEventSize = 100 * 1024

/** Adds the flags of the audit log, which have the names and defaults of kube-apiserver's where it has them. */
export function withAuditFlags(command: Command): Command {
  const { throttle, ...webhook } = defaultAuditWebhook
  const eventSize = 'an event with more bytes loses its bodies; one that is still too long is dropped'
  return command
    .option(
      '--audit-policy-file <file>',
      'which requests are in the audit log, and how much of them: a Policy of audit.k8s.io/v1 (default: each request, at ' +
        'level Metadata). It is read again when it changes; one with an error changes nothing',
    )
    .option(
      '--audit-log <path>',
      'write each audit event as a line of JSON: an Event of audit.k8s.io/v1; - is standard output. ' +
        'SIGHUP reopens the file. If the disk is too slow, lines are dropped and counted (kcp_audit_lines_dropped_total)',
    )
    .option('--audit-log-path <path>', 'the same, under the name of kube-apiserver')
    .option(
      '--audit-log-maxsize <MiB>',
      'a file of this size is renamed to NAME-TIME.EXT and a new one is started; 0: never',
      parseCount,
      100,
    )
    .option('--audit-log-maxbackup <count>', 'how many renamed files are kept; 0: all', parseCount, 10)
    .option('--audit-log-maxage <days>', 'how long renamed files are kept; 0: for ever', parseCount, 0)
    .option('--audit-log-truncate-enabled', 'bound the size of the events in the file')
    .option('--audit-log-truncate-max-event-size <bytes>', eventSize, parsePositive, maxEventSize)
    .option(
      '--audit-webhook-config-file <file>',
      'send audit events to the server of this kubeconfig, in batches. No request waits for it: events beyond the buffer ' +
        'are dropped and counted (kcp_audit_webhook_events_dropped_total)',
    )
    .addOption(
      durationOption(
        '--audit-webhook-initial-backoff <duration>',
        'the wait before the second of five attempts; each further one is half as long again',
        '10s',
      ),
    )
    .option('--audit-webhook-batch-buffer-size <count>', 'events that may wait', parsePositive, webhook.bufferSize)
    .option('--audit-webhook-batch-max-size <count>', 'events in a batch', parsePositive, webhook.maxBatchSize)
    .addOption(
      durationOption('--audit-webhook-batch-max-wait <duration>', 'how long an event waits for a batch to fill', '30s'),
    )
    .option('--no-audit-webhook-batch-throttle-enable', 'send as many batches a second as there are')
    .option(
      '--audit-webhook-batch-throttle-qps <count>',
      'batches a second in the mean',
      parsePositive,
      throttle?.qps ?? 0,
    )
    .option(
      '--audit-webhook-batch-throttle-burst <count>',
      'batches at a time, if fewer were sent before',
      parsePositive,
      throttle?.burst ?? 0,
    )
    .option('--audit-webhook-truncate-enabled', 'bound the size of the events that are sent')
    .option('--audit-webhook-truncate-max-batch-size <bytes>', 'bytes in a batch', parsePositive, webhook.maxBatchBytes)
    .option('--audit-webhook-truncate-max-event-size <bytes>', eventSize, parsePositive, maxEventSize)
}

function durationOption(flags: string, description: string, byDefault: string): Option {
  return new Option(flags, description).argParser(parseDuration).default(parseDuration(byDefault), byDefault)
}

/** The options of the audit log; none without a place for its events. */
export function auditOf(flags: AuditFlags, worker = 1): { audit?: AuditLogOptions } {
  const { auditPolicyFile: policyFile, auditLogPath, auditLog = auditLogPath, auditWebhookConfigFile } = flags
  if (auditLog === undefined && auditWebhookConfigFile === undefined) return {}
  return {
    audit: {
      ...(policyFile !== undefined && { policyFile }),
      ...(auditLog !== undefined && { file: auditFileOf(auditPathOf(auditLog, worker), flags) }),
      ...(auditWebhookConfigFile !== undefined && { webhook: auditWebhookOf(auditWebhookConfigFile, flags) }),
    },
  }
}

/** The file of a worker: `audit.log`, `audit.worker-2.log`. Several processes cannot rename one file. */
function auditPathOf(path: string, worker: number): string {
  if (worker === 1) return path
  const { dir, name, ext } = parse(path)
  return join(dir, `${name}.worker-${worker}${ext}`)
}

function auditFileOf(path: string, flags: AuditFlags): NonNullable<AuditLogOptions['file']> {
  return {
    path,
    maxFileBytes: flags.auditLogMaxsize * 1024 * 1024,
    maxBackups: flags.auditLogMaxbackup,
    maxAgeMs: flags.auditLogMaxage * dayMs,
    ...(flags.auditLogTruncateEnabled === true && { maxEventBytes: flags.auditLogTruncateMaxEventSize }),
  }
}

function auditWebhookOf(configFile: string, flags: AuditFlags): NonNullable<AuditLogOptions['webhook']> {
  const { throttle: _, ...defaults } = defaultAuditWebhook
  const { auditWebhookBatchThrottleQps: qps, auditWebhookBatchThrottleBurst: burst } = flags
  return {
    ...defaults,
    configFile,
    bufferSize: flags.auditWebhookBatchBufferSize,
    maxBatchSize: flags.auditWebhookBatchMaxSize,
    maxBatchWaitMs: flags.auditWebhookBatchMaxWait,
    initialBackoffMs: flags.auditWebhookInitialBackoff,
    maxBatchBytes: flags.auditWebhookTruncateMaxBatchSize,
    ...(flags.auditWebhookBatchThrottleEnable && { throttle: { qps, burst } }),
    ...(flags.auditWebhookTruncateEnabled === true && { maxEventBytes: flags.auditWebhookTruncateMaxEventSize }),
  }
}

/** The flag values as commander passes them. */
export interface VolumeMoveFlags {
  readonly volumeMoves: number
  readonly volumeMovesPerMember: number
  readonly volumeMovesPerLogicalCluster: number
}

/** Adds `--volume-moves` and its bounds of members and logical clusters. */
export function withVolumeMoveFlags(command: Command): Command {
  const { total, perMember, perLogicalCluster } = defaultVolumeMoveLimits
  return command
    .option('--volume-moves <count>', 'how many volumes are copied at a time; more wait', parsePositive, total)
    .option(
      '--volume-moves-per-member <count>',
      'how many of them may be from or to one member cluster',
      parsePositive,
      perMember,
    )
    .option(
      '--volume-moves-per-logical-cluster <count>',
      'how many of them may be of one logical cluster',
      parsePositive,
      perLogicalCluster,
    )
}

/** The bounds of volumes that are copied at a time. */
export function volumeMovesOf(flags: VolumeMoveFlags): { volumeMoves: VolumeMoveLimits } {
  const { volumeMoves: total, volumeMovesPerMember: perMember } = flags
  return { volumeMoves: { total, perMember, perLogicalCluster: flags.volumeMovesPerLogicalCluster } }
}

/** The flag values as commander passes them. */
export interface SignInFlags {
  readonly authenticationConfig?: string
}

/** Adds `--authentication-config`. */
export function withSignInFlags(command: Command): Command {
  return command.option(
    '--authentication-config <file>',
    'identity providers whose users are known in all logical clusters: an AuthenticationConfiguration of ' +
      'apiserver.config.k8s.io/v1, as kube-apiserver has it. It is read again when it changes; one with an error changes nothing',
  )
}

/** The file with the AuthenticationConfiguration; none without `--authentication-config`. */
export function signInOf({ authenticationConfig }: SignInFlags): { authenticationConfig?: string } {
  return authenticationConfig === undefined ? {} : { authenticationConfig }
}

/** The flag values as commander passes them. */
export interface EgressFlags {
  readonly egressAllow: readonly string[]
  readonly egressDeny: readonly string[]
}

/** Adds `--egress-allow` and `--egress-deny`. */
export function withEgressFlags(command: Command): Command {
  return command
    .option(
      '--egress-allow <cidr>',
      "addresses at which tenants' webhooks may be called although they are loopback, link-local, private or this machine's own; " +
        'may be repeated',
      addCidr,
      [],
    )
    .option(
      '--egress-deny <cidr>',
      "public addresses at which tenants' webhooks may not be called, such as nodes, pods and Services of the host; wins over " +
        '--egress-allow; may be repeated',
      addCidr,
      [],
    )
}

/** Converts the flag values to options of the roles. */
export function egressOf({ egressAllow, egressDeny }: EgressFlags): { egress: AddressPolicyOptions } {
  return { egress: { allow: egressAllow, deny: egressDeny } }
}

function addCidr(text: string, before: readonly string[]): string[] {
  if (!isCidr(text)) throw new InvalidArgumentError('it must be a CIDR such as 10.0.0.0/8, or an address')
  return [...before, text]
}

/** The flag values as commander passes them. */
export interface ConsoleFlags {
  readonly console: boolean
  readonly consoleOrigin: readonly string[]
}

/** Adds `--no-console` and `--console-origin`. */
export function withConsoleFlags(command: Command): Command {
  return command
    .option('--no-console', 'do not serve the console at /console/')
    .option(
      '--console-origin <url>',
      'an address at which browsers reach the console through something else, such as an Ingress: https://console.example.com; ' +
        'may be repeated',
      addOrigin,
      [],
    )
}

/** Converts the flag values to options of the roles. */
export function consoleOf({ console, consoleOrigin }: ConsoleFlags): { console?: ConsoleSettings } {
  return console ? { console: { origins: consoleOrigin } } : {}
}

function addOrigin(text: string, before: readonly string[]): string[] {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' || url.origin !== text.replace(/\/$/, ''))
    throw new InvalidArgumentError('it must be https://HOST or https://HOST:PORT, without a path')
  return [...before, url.origin]
}

/** The flag values as commander passes them. */
export interface InstallationFlags {
  readonly rootDir?: string
  readonly hostKubeconfig?: string
  /** The context in that file; absent: its current one. */
  readonly hostContext?: string
}

/** The flag of `--root-dir` as the user gave it, with a space before it, for commands that a hint shows. */
export function rootDirFlag({ rootDir }: Pick<InstallationFlags, 'rootDir'>): string {
  return rootDir === undefined ? '' : ` --root-dir ${rootDir}`
}

/** Adds `--root-dir`, `--host-kubeconfig` and `--host-context`. */
export function withInstallation(command: Command): Command {
  return command
    .addOption(new Option('--root-dir <dir>', 'directory of `kcp start`').conflicts('hostKubeconfig'))
    .addOption(
      new Option(
        '--host-kubeconfig <file>',
        'kubeconfig of the host cluster (default: the installation of `kcp use`, else KUBECONFIG)',
      ),
    )
    .addOption(new Option('--host-context <name>', 'context in that file (default: its current one)'))
}

/** The flag values as commander passes them. */
export interface TracingFlags {
  readonly tracingEndpoint?: string
  readonly tracingSamplingRatePerMillion: number
}

const million = 1_000_000

/** Adds `--tracing-endpoint` and the sampling rate. */
export function withTracingFlags(command: Command): Command {
  return command
    .option(
      '--tracing-endpoint <url>',
      'send traces to this OpenTelemetry collector, as OTLP over HTTP: http://HOST:4318 (default: nothing is traced)',
      parseEndpoint,
    )
    .option(
      '--tracing-sampling-rate-per-million <count>',
      'how many of a million traces that begin in this process are recorded; a trace that a client of an administrator began is ' +
        'recorded if the client records it',
      parseRate,
      0,
    )
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('an endpoint is a URL such as http://collector:4318')
  // Credentials would be visible in the list of processes.
  if (url.username !== '' || url.password !== '') throw new InvalidArgumentError('the URL may not contain credentials')
  return text
}

function parseRate(text: string): number {
  const rate = /^[0-9]+$/.test(text) ? Number(text) : NaN
  if (!(rate <= million)) throw new InvalidArgumentError(`a rate is a number from 0 to ${million}`)
  return rate
}

/**
 * Opens the tracer of this process; undefined without `--tracing-endpoint`. Call it before anything else is created.
 */
export async function openTracing(
  { tracingEndpoint: endpoint, tracingSamplingRatePerMillion: samplingRatePerMillion }: TracingFlags,
  { serviceName, metrics, log }: { readonly serviceName: string; readonly metrics: Metrics; readonly log: Logger },
): Promise<AsyncDisposable | undefined> {
  if (endpoint === undefined) return undefined
  const instanceId = `${hostname()}_${randomUUID()}`
  // The variable that OpenTelemetry specifies for the delay of batches.
  const delay = Number(process.env['OTEL_BSP_SCHEDULE_DELAY'])
  const batchDelayMs = delay > 0 ? { batchDelayMs: delay } : {}
  return await openTracer({ endpoint, samplingRatePerMillion, serviceName, instanceId, metrics, log, ...batchDelayMs })
}

/**
 * An action that loads its module when the command runs, and calls `run` of it: `--help` and the other commands do not
 * wait for the module. Rejects with the errors of loading and of `run`.
 */
export function loadedLate<Args extends unknown[]>(
  load: () => Promise<{ readonly run: (...args: Args) => Promise<void> }>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const { run } = await load()
    await run(...args)
  }
}

/** `--log-level` with its default. */
export function logLevelOption(usual: LogLevel): Option {
  return new Option('--log-level <level>', 'how much is logged')
    .choices(['debug', 'info', 'warn', 'error'])
    .default(usual)
}

/**
 * Adds a flag such as `--root-dir <dir>`, without which the command is refused. Commander's own check comes before the
 * check of unknown flags, so a misspelt flag would be called missing.
 */
export function withRequired(command: Command, option: Option): Command {
  return command.addOption(option).hook('preAction', () => {
    if (command.getOptionValue(option.attributeName()) === undefined)
      command.error(`error: required option '${option.flags}' not specified`, {
        code: 'commander.missingMandatoryOptionValue',
      })
  })
}

/** Names with commas between. Throws InvalidArgumentError for an empty name. */
export function parseNames(text: string): string[] {
  const names = text.split(',')
  if (names.includes('')) throw new InvalidArgumentError('it must be names with commas, such as acme,beta')
  return names
}

/** A whole number, 0 or more. Throws InvalidArgumentError, which commander prints with the flag's name. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 0) throw new InvalidArgumentError('it must be a whole number, 0 or more')
  return count
}

/** A whole number above 0. Throws InvalidArgumentError. */
function parsePositive(text: string): number {
  const count = parseCount(text)
  if (count === 0) throw new InvalidArgumentError('it must be a whole number above 0')
  return count
}

/** The memory that a worker must have, bytes: under load it takes some 200 MiB. */
const minWorkerBytes = 256 * 1024 * 1024

/**
 * Parses a number of workers; `auto`: the cores that the container may use, fewer if its memory is too small for so
 * many. `memoryBytes` is what the workers share. It throws InvalidArgumentError.
 */
export function parseWorkersTo(max: number, memoryBytes = containerLimit()): (text: string) => number {
  const fitting = Math.max(1, Math.floor(memoryBytes / minWorkerBytes))
  return (text) => {
    const count = text === 'auto' ? Math.min(availableParallelism(), max, fitting) : Number(text)
    if (!Number.isInteger(count) || count < 1 || count > max)
      throw new InvalidArgumentError(`it must be auto or a whole number from 1 to ${max}`)
    if (count > fitting) {
      const has = `the container has ${Math.floor(memoryBytes / 1024 / 1024)} MiB, enough for ${fitting}`
      throw new InvalidArgumentError(`each worker needs 256 MiB, and ${has}: raise its limit or name fewer workers`)
    }
    return count
  }
}

/** The count of a simulated member's nodes, each of which has a range of addresses. */
export function parseNodes(text: string): number {
  const count = parseCount(text)
  if (count > 200) throw new InvalidArgumentError('it must be a whole number from 0 to 200')
  return count
}

/** Checks that the text is a Kubernetes quantity above zero, and returns it as it is. */
export function parseQuantity(text: string): string {
  const quantity = tryQuantity(text)
  if (quantity === undefined || quantity.nanos <= 0n)
    throw new InvalidArgumentError('it must be a quantity such as 4, 500m or 8Gi')
  return text
}

const hostName = /^[a-z0-9]([-_a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]{0,61}[a-z0-9])?)*\.?$/i

/**
 * Checks that the text is a host name or an IP address, and returns it as it is. Throws InvalidArgumentError, which
 * commander prints with the flag's name.
 */
export function parseHost(text: string): string {
  if (isIP(text) === 0 && (!hostName.test(text) || /^[\d.]+$/.test(text)))
    throw new InvalidArgumentError('it must be a host name or an IP address, without https:// and port')
  return text
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `HOST:PORT` or `:PORT`, with brackets around an IPv6 address; without a host: all addresses. */
export function parseListenAddress(text: string): ListenAddress {
  const [, inner, plain = '', port = ''] = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? []
  if (port === '') throw new InvalidArgumentError('an address to listen on is HOST:PORT or :PORT')
  return { host: (inner ?? plain) || '::', port: parsePort(port) }
}

/** A whole number from 0 to 65535. Throws InvalidArgumentError, which commander prints with the flag's name. */
export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    throw new InvalidArgumentError('a port is a number from 0 to 65535')
  return port
}
