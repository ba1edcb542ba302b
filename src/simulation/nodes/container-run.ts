// One simulated container: pull, start, readiness, end, restart. It changes only when `advance` is called.
import { randomBytes } from 'node:crypto'
import { timestamp } from '#async/index.ts'
import type { Container, ContainerState, ContainerStatus } from '#simulation/cluster/objects.ts'
import { LogBuffer } from '#simulation/runtime/log-buffer.ts'
import { programOf, type Program, type Timing } from './programs.ts'

export type ContainerRole = 'init' | 'sidecar' | 'main'

/** What a kubelet tells in Events. */
export interface Told {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export interface ContainerSetting {
  readonly role: ContainerRole
  readonly restartPolicy: string
  readonly timing: Timing
  /** Names of the node's images; a started container adds its own. */
  readonly images: Set<string>
  readonly podTitle: string
  readonly tell: (told: Told) => void
}

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'creating'; readonly untilMs: number }
  | { readonly kind: 'pullFailed'; readonly sinceMs: number }
  | { readonly kind: 'misconfigured'; readonly message: string; readonly untilMs: number }
  | { readonly kind: 'running'; readonly sinceMs: number }
  | { readonly kind: 'backoff'; readonly untilMs: number; readonly seconds: number }
  | { readonly kind: 'ended' }

interface Ended {
  readonly exitCode: number
  readonly startedMs: number
  readonly finishedMs: number
}

/** ErrImagePull becomes ImagePullBackOff. */
const pullBackoffMs = 1500
const [firstBackoffSeconds, maxBackoffSeconds] = [10, 300]
const configRetryMs = 500

export class ContainerRun {
  readonly container: Container
  readonly role: ContainerRole
  log = new LogBuffer()
  previousLog: LogBuffer | undefined
  readonly #setting: ContainerSetting
  readonly #program: Program
  #state: State = { kind: 'idle' }
  #last: Ended | undefined
  #restarts: number
  #id = newId()

  constructor(container: Container, setting: ContainerSetting, restarts = 0) {
    this.container = container
    this.role = setting.role
    this.#setting = setting
    this.#restarts = restarts
    const isBatch = setting.role === 'init' || (setting.role === 'main' && setting.restartPolicy !== 'Always')
    this.#program = programOf(container, { isBatch })
  }

  get isRunning(): boolean {
    return this.#state.kind === 'running'
  }

  /** Not begun yet. */
  get isIdle(): boolean {
    return this.#state.kind === 'idle'
  }

  /** Ended, and not to be started again. */
  get isDone(): boolean {
    return this.#state.kind === 'ended'
  }

  get hasFailed(): boolean {
    return this.isDone && (this.#last?.exitCode ?? 0) !== 0
  }

  /** It runs or has run: the pod is no longer Pending because of it. */
  get hasStarted(): boolean {
    return this.isRunning || this.#last !== undefined
  }

  isReady(nowMs: number): boolean {
    return this.#state.kind === 'running' && nowMs - this.#state.sinceMs >= this.#program.readyAfterMs
  }

  /**
   * Changes the state as far as it has changed by now. `problem`: why the container cannot be configured. Returns the
   * time of the next change, if there is one.
   */
  advance(nowMs: number, problem: string | undefined): number | undefined {
    for (;;) {
      const state = this.#state
      const next = this.#next(state, nowMs, problem)
      if (next === state) return this.#changesAt(state, nowMs)
      this.#state = next
    }
  }

  /** Ends it, as after SIGTERM. */
  stop(nowMs: number): void {
    if (this.#state.kind === 'running') this.#end(this.#state.sinceMs, nowMs, 0)
    this.#state = { kind: 'ended' }
    this.log.close()
  }

  #next(state: State, nowMs: number, problem: string | undefined): State {
    switch (state.kind) {
      case 'idle':
        return { kind: 'creating', untilMs: nowMs + this.#startMs() }
      case 'creating':
        return nowMs < state.untilMs ? state : this.#start(nowMs, problem)
      case 'misconfigured':
        return nowMs < state.untilMs ? state : this.#start(nowMs, problem)
      case 'backoff':
        return nowMs < state.untilMs ? state : this.#restart(nowMs)
      case 'running':
        return nowMs < this.#endsAt(state.sinceMs) ? state : this.#ended(state.sinceMs, nowMs)
      default:
        return state
    }
  }

  #startMs(): number {
    const { timing, images } = this.#setting
    return timing.startMs + (images.has(this.container.image ?? '') ? 0 : timing.pullMs)
  }

  #endsAt(sinceMs: number): number {
    const { endsAfterMs } = this.#program
    return endsAfterMs === undefined ? Infinity : sinceMs + endsAfterMs
  }

  #start(nowMs: number, problem: string | undefined): State {
    const { image = '', name } = this.container
    if (this.#program.isMissing) {
      const message = this.#pullError()
      this.#tell('Warning', 'Failed', `Failed to pull image "${image}": ${message}`)
      this.#tell('Warning', 'Failed', 'Error: ErrImagePull')
      return { kind: 'pullFailed', sinceMs: nowMs }
    }
    if (problem !== undefined) {
      if (this.#state.kind !== 'misconfigured') this.#tell('Warning', 'Failed', `Error: ${problem}`)
      return { kind: 'misconfigured', message: problem, untilMs: nowMs + configRetryMs }
    }
    const pulled = this.#setting.images.has(image)
      ? `Container image "${image}" already present on machine`
      : `Successfully pulled image "${image}" (simulated)`
    this.#setting.images.add(image)
    this.#tell('Normal', 'Pulled', pulled)
    this.#tell('Normal', 'Created', `Created container: ${name}`)
    this.#tell('Normal', 'Started', `Started container ${name}`)
    return this.#run(nowMs)
  }

  #pullError(): string {
    const { image = '' } = this.container
    return `rpc error: code = NotFound desc = failed to pull and unpack image "${image}": failed to resolve reference "${image}": not found (simulated)`
  }

  #run(nowMs: number): State {
    this.#id = newId()
    const { image = '', name, ports = [] } = this.container
    this.log.write(`simulated container "${name}" of image "${image}" has started`)
    for (const { containerPort } of ports) this.log.write(`listening on port ${containerPort} (simulated HTTP)`)
    return { kind: 'running', sinceMs: nowMs }
  }

  #ended(sinceMs: number, nowMs: number): State {
    const { exitCode } = this.#program
    if (exitCode !== 0)
      this.log.write(
        `error: the simulated program of image "${this.container.image ?? ''}" fails (exit code ${exitCode})`,
      )
    else this.log.write('done')
    this.#end(sinceMs, nowMs, exitCode)
    if (!this.#restartsAfter(exitCode)) {
      this.log.close()
      return { kind: 'ended' }
    }
    // The first restart comes at once, as kubelet's.
    const seconds =
      this.#restarts === 0 ? 1 : Math.min(maxBackoffSeconds, firstBackoffSeconds * 2 ** (this.#restarts - 1))
    if (this.#restarts > 0)
      this.#tell(
        'Warning',
        'BackOff',
        `Back-off restarting failed container ${this.container.name} in pod ${this.#setting.podTitle}`,
      )
    return { kind: 'backoff', untilMs: nowMs + seconds * 1000, seconds }
  }

  #end(startedMs: number, finishedMs: number, exitCode: number): void {
    this.#last = { startedMs, finishedMs, exitCode }
  }

  #restartsAfter(exitCode: number): boolean {
    const { restartPolicy } = this.#setting
    switch (this.role) {
      case 'sidecar':
        return true
      case 'init':
        return exitCode !== 0 && restartPolicy !== 'Never'
      case 'main':
        return restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0)
    }
  }

  #restart(nowMs: number): State {
    this.log.close()
    this.previousLog = this.log
    this.log = new LogBuffer()
    this.#restarts++
    this.#tell('Normal', 'Started', `Started container ${this.container.name}`)
    return this.#run(nowMs)
  }

  #changesAt(state: State, nowMs: number): number | undefined {
    switch (state.kind) {
      case 'creating':
      case 'misconfigured':
      case 'backoff':
        return state.untilMs
      case 'pullFailed':
        return nowMs - state.sinceMs < pullBackoffMs ? state.sinceMs + pullBackoffMs : undefined
      case 'running': {
        const readyAt = state.sinceMs + this.#program.readyAfterMs
        const at = Math.min(this.#endsAt(state.sinceMs), readyAt > nowMs ? readyAt : Infinity)
        return at === Infinity ? undefined : at
      }
      default:
        return undefined
    }
  }

  #tell(type: Told['type'], reason: string, message: string): void {
    this.#setting.tell({ type, reason, message })
  }

  /** `waitsFor`: the reason of a container that may not start yet. */
  status(nowMs: number, waitsFor: string): ContainerStatus {
    const { image = '', name } = this.container
    const last = this.#last === undefined ? {} : { terminated: this.#terminated(this.#last) }
    const hasId = this.hasStarted
    const isEnded = this.#state.kind === 'ended'
    return {
      name,
      image,
      imageID: hasId ? `simulated/${image}` : '',
      ...(hasId && { containerID: this.#id }),
      ready: this.role === 'init' ? isEnded && !this.hasFailed : this.isReady(nowMs),
      started: this.isRunning,
      restartCount: this.#restarts,
      state: this.#shownState(nowMs, waitsFor),
      lastState: isEnded ? {} : last,
    }
  }

  #shownState(nowMs: number, waitsFor: string): ContainerState {
    const state = this.#state
    switch (state.kind) {
      case 'running':
        return { running: { startedAt: timestamp(state.sinceMs) } }
      case 'ended':
        return this.#last === undefined
          ? { waiting: { reason: waitsFor } }
          : { terminated: this.#terminated(this.#last) }
      case 'pullFailed': {
        const isBackingOff = nowMs - state.sinceMs >= pullBackoffMs
        const message = isBackingOff
          ? `Back-off pulling image "${this.container.image ?? ''}": ErrImagePull: ${this.#pullError()}`
          : this.#pullError()
        return { waiting: { reason: isBackingOff ? 'ImagePullBackOff' : 'ErrImagePull', message } }
      }
      case 'misconfigured':
        return { waiting: { reason: 'CreateContainerConfigError', message: state.message } }
      case 'backoff': {
        // Before the first restart, the container is shown as terminated.
        if (this.#restarts === 0 && this.#last !== undefined) return { terminated: this.#terminated(this.#last) }
        const message = `back-off ${durationText(state.seconds)} restarting failed container=${this.container.name} pod=${this.#setting.podTitle}`
        return { waiting: { reason: 'CrashLoopBackOff', message } }
      }
      default:
        return { waiting: { reason: waitsFor } }
    }
  }

  #terminated({ exitCode, startedMs, finishedMs }: Ended): NonNullable<ContainerState['terminated']> {
    return {
      exitCode,
      reason: exitCode === 0 ? 'Completed' : 'Error',
      startedAt: timestamp(startedMs),
      finishedAt: timestamp(finishedMs),
      containerID: this.#id,
    }
  }
}

function newId(): string {
  return `simulated://${randomBytes(32).toString('hex')}`
}

function durationText(seconds: number): string {
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60]
  return minutes === 0 ? `${rest}s` : `${minutes}m${rest}s`
}
