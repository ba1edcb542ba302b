// `kubectl exec` and `attach` into simulated containers.
import { badRequest, notFound } from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import type { ContainerRun } from '#simulation/nodes/container-run.ts'
import type { PodRun } from '#simulation/nodes/pod-run.ts'
import { channels, type Channels } from './channels.ts'
import { runScript, runWords, shellIn, type CommandResult, type ShellWorld } from './shell.ts'

/** A line that somebody types. */
const maxLineBytes = 4096
/** Lines that wait while a command runs; more are dropped. */
const maxWaiting = 100
const banner = 'This is a simulated container. "help" lists its commands.'

/** The container that the query names, which must run. Throws with kubelet's words. */
export function runningContainer(run: PodRun, query: URLSearchParams): ContainerRun {
  const name = query.get('container') ?? run.containers.find(({ role }) => role === 'main')?.container.name ?? ''
  const found = run.container(name)
  if (found === undefined) throw badRequest(`container ${name} is not valid for pod ${run.pod.metadata.name ?? ''}`)
  if (!found.isRunning) throw notFound({ group: '', resource: 'containers' }, name)
  return found
}

/** Runs the command of the query on the connection. */
export function startExec(connection: Channels, query: URLSearchParams, world: ShellWorld): void {
  using life = childSignal(world.signal)
  const session = new Session(connection, { ...world, signal: life.signal }, { isTty: query.get('tty') === 'true' })
  connection.onClose(() => life.abort(new DOMException('the client has gone', 'AbortError')))
  const words = query.getAll('command')
  const shell = shellIn(words)
  if (shell === undefined) void session.run((write) => runOnce(words, world, write))
  else if (shell.script !== undefined) {
    const { script } = shell
    void session.run((write) => runScript(script, world, write))
  } else session.readLines({ isInteractive: query.get('stdin') === 'true' })
}

async function runOnce(
  words: readonly string[],
  world: ShellWorld,
  write: (result: CommandResult) => void,
): Promise<CommandResult> {
  const result = await runWords(words, world)
  write(result)
  return result
}

/** One session: its output, its lines of input, its exit code. */
class Session {
  readonly #connection: Channels
  readonly #world: ShellWorld
  readonly #isTty: boolean
  #line = ''
  #pending = Promise.resolve()
  #waiting = 0
  #hasEnded = false

  constructor(connection: Channels, world: ShellWorld, { isTty }: { readonly isTty: boolean }) {
    this.#connection = connection
    this.#world = world
    this.#isTty = isTty
  }

  async run(command: (write: (result: CommandResult) => void) => Promise<CommandResult>): Promise<void> {
    try {
      const { code } = await command((result) => this.#write(result))
      this.#end(code)
    } catch (error) {
      this.#write({ code: 1, err: `${error instanceof Error ? error.message : String(error)}\n` })
      this.#end(1)
    }
  }

  /** A shell that takes its commands from the input. */
  readLines({ isInteractive }: { readonly isInteractive: boolean }): void {
    if (!isInteractive) {
      this.#end(0)
      return
    }
    if (this.#isTty) this.#text(channels.stdout, `${banner}\n`)
    this.#prompt()
    this.#connection.onMessage((channel, data) => {
      if (channel === channels.stdin) this.#type(data.toString())
      else if (channel === channels.close && data[0] === channels.stdin) this.#enqueue(() => this.#end(0))
    })
  }

  #type(text: string): void {
    for (const letter of text) {
      if (letter === '\r' || letter === '\n') this.#enter()
      else if (letter === '\u0004' && this.#line === '') this.#enqueue(() => this.#end(0))
      else if (letter === '\u0003') this.#discard()
      else if (letter === '\u007f' || letter === '\b') this.#erase()
      else if (letter >= ' ' && this.#line.length < maxLineBytes) {
        this.#line += letter
        if (this.#isTty) this.#text(channels.stdout, letter)
      }
    }
  }

  #enter(): void {
    const line = this.#line
    this.#line = ''
    if (this.#isTty) this.#text(channels.stdout, '\n')
    this.#enqueue(async () => {
      const result = await runScript(line, this.#world, (one) => this.#write(one))
      if (result.exits === true) this.#end(result.code)
      else this.#prompt()
    })
  }

  #discard(): void {
    this.#line = ''
    if (this.#isTty) this.#text(channels.stdout, '^C\n')
    this.#prompt()
  }

  #erase(): void {
    if (this.#line === '') return
    this.#line = this.#line.slice(0, -1)
    if (this.#isTty) this.#text(channels.stdout, '\b \b')
  }

  #enqueue(work: () => void | Promise<void>): void {
    if (this.#waiting >= maxWaiting) return
    this.#waiting++
    this.#pending = this.#pending
      .then(work)
      .catch(() => this.#end(1))
      .finally(() => this.#waiting--)
  }

  #prompt(): void {
    if (this.#isTty && !this.#hasEnded) this.#text(channels.stdout, '$ ')
  }

  #write({ out, err }: CommandResult): void {
    if (out !== undefined && out !== '') this.#text(channels.stdout, out)
    // A terminal has one output.
    if (err !== undefined && err !== '') this.#text(this.#isTty ? channels.stdout : channels.stderr, err)
  }

  #text(channel: number, text: string): void {
    this.#connection.send(channel, this.#isTty ? text.replaceAll('\n', '\r\n') : text)
  }

  #end(code: number): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#connection.send(channels.error, JSON.stringify(statusOf(code)))
    this.#connection.close()
  }
}

function statusOf(code: number): object {
  if (code === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  }
}

/** Shows the log of the container as it grows, until the container ends. */
export function startAttach(connection: Channels, { log }: ContainerRun, parent: AbortSignal): void {
  const life = childSignal(parent)
  connection.onClose(() => life.abort(new DOMException('the client has gone', 'AbortError')))
  const copy = async (): Promise<void> => {
    for await (const { text } of log.follow(life.signal)) connection.send(channels.stdout, `${text}\n`)
    connection.send(channels.error, JSON.stringify(statusOf(0)))
    connection.close()
    life[Symbol.dispose]()
  }
  void copy()
}
