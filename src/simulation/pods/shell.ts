// The small shell of simulated containers: the commands that people type first to look around.
import type { Container, Pod } from '#simulation/cluster/objects.ts'

/** The world of a container, as its commands see it. */
export interface ShellWorld {
  readonly pod: Pod
  readonly container: Container
  readonly environment: Readonly<Record<string, string>>
  readonly files: ReadonlyMap<string, string>
  /** Asks a Service or an address by HTTP; rejects with the words of a failure. */
  readonly fetch: (url: string) => Promise<string>
  readonly signal: AbortSignal
}

export interface CommandResult {
  readonly code: number
  readonly out?: string
  readonly err?: string
  /** The shell ends. */
  readonly exits?: true
}

type Command = (args: readonly string[], world: ShellWorld) => CommandResult | Promise<CommandResult>

const maxSleepSeconds = 3600

const commands: Readonly<Record<string, Command>> = {
  help: () => ({
    code: 0,
    out: `This is a simulated container: no program runs in it. Commands: ${Object.keys(commands).sort().join(' ')}\n`,
  }),
  echo: (args) =>
    args[0] === '-n' ? { code: 0, out: args.slice(1).join(' ') } : { code: 0, out: `${args.join(' ')}\n` },
  hostname: (_args, { pod }) => ({ code: 0, out: `${pod.spec.hostname ?? pod.metadata.name ?? ''}\n` }),
  env: (_args, { environment }) => ({ code: 0, out: environmentText(environment) }),
  printenv: ([name], { environment }) => {
    if (name === undefined) return { code: 0, out: environmentText(environment) }
    const value = environment[name]
    return value === undefined ? { code: 1 } : { code: 0, out: `${value}\n` }
  },
  date: () => ({ code: 0, out: `${new Date().toUTCString()}\n` }),
  pwd: () => ({ code: 0, out: '/\n' }),
  whoami: () => ({ code: 0, out: 'root\n' }),
  id: () => ({ code: 0, out: 'uid=0(root) gid=0(root) groups=0(root)\n' }),
  uname: () => ({ code: 0, out: 'simulated\n' }),
  ps: (_args, { container }) => ({
    code: 0,
    out: `PID   USER     COMMAND\n    1 root     ${container.image ?? ''} (simulated)\n`,
  }),
  ls: ([path = '/'], world) => list(path, world),
  cat: (paths, world) => concatenate(paths, world),
  true: () => ({ code: 0 }),
  false: () => ({ code: 1 }),
  exit: ([code = '0']) => ({ code: Number(code) % 256 || 0, exits: true }),
  sleep: async ([seconds = '0'], { signal }) => {
    await pause(Math.min(maxSleepSeconds, Number(seconds) || 0) * 1000, signal)
    return { code: 0 }
  },
  curl: (args, world) => fetchUrl(args, world),
  wget: (args, world) => fetchUrl(args, world),
}

function environmentText(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

function list(path: string, { files }: ShellWorld): CommandResult {
  if (files.has(path)) return { code: 0, out: `${path}\n` }
  const prefix = path.endsWith('/') ? path : `${path}/`
  const inside = [...files.keys()].filter((file) => file.startsWith(prefix))
  if (inside.length === 0) return { code: 1, err: `ls: ${path}: No such file or directory\n` }
  const names = new Set(inside.map((file) => file.slice(prefix.length).split('/')[0] ?? ''))
  return {
    code: 0,
    out: [...names]
      .sort()
      .map((name) => `${name}\n`)
      .join(''),
  }
}

function concatenate(paths: readonly string[], { files }: ShellWorld): CommandResult {
  const missing = paths.find((path) => !files.has(path))
  const out = paths.map((path) => files.get(path) ?? '').join('')
  if (missing === undefined) return { code: 0, out }
  return { code: 1, out, err: `cat: can't open '${missing}': No such file or directory\n` }
}

async function fetchUrl(args: readonly string[], { fetch }: ShellWorld): Promise<CommandResult> {
  const url = args.find((one) => !one.startsWith('-') && one !== '/dev/null')
  if (url === undefined) return { code: 2, err: 'a URL is missing\n' }
  try {
    return { code: 0, out: await fetch(/^\w+:\/\//.test(url) ? url : `http://${url}`) }
  } catch (error) {
    return { code: 7, err: `${error instanceof Error ? error.message : String(error)}\n` }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
  })
}

/** Whether the words start a shell; `script`: the text after -c. */
export function shellIn(words: readonly string[]): { readonly script?: string } | undefined {
  if (!/^(\/\S*\/)?(sh|bash|ash|dash)$/.test(words[0] ?? '')) return undefined
  const at = words.findIndex((word) => /^-\w*c$/.test(word))
  return at < 0 ? {} : { script: words[at + 1] ?? '' }
}

/** Runs one command without a shell: its words are taken as they are. */
export async function runWords(words: readonly string[], world: ShellWorld): Promise<CommandResult> {
  const [name = '', ...args] = words
  const command = Object.hasOwn(commands, baseName(name)) ? commands[baseName(name)] : undefined
  if (command !== undefined) return await command(args, world)
  return { code: 127, err: `sh: ${name}: not found (this is a simulated container: "help" lists its commands)\n` }
}

function baseName(name: string): string {
  return name.split('/').at(-1) ?? ''
}

/** Runs a script: commands with `;`, `&&`, `||` or newlines in between, variables and quotes. `write` gets the output as it comes. */
export async function runScript(
  script: string,
  world: ShellWorld,
  write: (result: CommandResult) => void,
): Promise<CommandResult> {
  let last: CommandResult = { code: 0 }
  for (const { words, after } of parseScript(script, world.environment, () => last.code)) {
    if ((after === '&&' && last.code !== 0) || (after === '||' && last.code === 0)) continue
    const list = words()
    if (list.length === 0) continue
    last = await runWords(list, world)
    write(last)
    if (last.exits === true || world.signal.aborted) return last
  }
  return { code: last.code }
}

interface Step {
  readonly words: () => readonly string[]
  /** What stands before the command. */
  readonly after: string
}

function parseScript(script: string, environment: Readonly<Record<string, string>>, code: () => number): Step[] {
  const steps: Step[] = []
  let after = ';'
  // A separator within quotes is text.
  for (const part of script
    .match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|&&|\|\||[;\n]|[^'";\n&|\\]|[&|])/g)
    ?.reduce(joined, ['']) ?? []) {
    if (['&&', '||', ';', '\n'].includes(part)) after = part
    else {
      const before = after
      steps.push({ words: () => wordsOf(part, environment, code), after: before })
      after = ';'
    }
  }
  return steps
}

function joined(parts: string[], token: string): string[] {
  const isSeparator = ['&&', '||', ';', '\n'].includes(token)
  const last = parts.at(-1) ?? ''
  if (isSeparator) parts.push(token)
  else if (['&&', '||', ';', '\n'].includes(last)) parts.push(token)
  else parts[parts.length - 1] = last + token
  return parts
}

function wordsOf(text: string, environment: Readonly<Record<string, string>>, code: () => number): string[] {
  const expand = (part: string): string =>
    part.replaceAll(/\$(?:\{(\w+)\}|(\w+)|(\?))/g, (_, braced?: string, plain?: string, status?: string) =>
      status !== undefined ? String(code()) : (environment[braced ?? plain ?? ''] ?? ''),
    )
  const words: string[] = []
  for (const match of text.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/g)) {
    const pieces = match[0].match(/'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^'"\\]+/g) ?? []
    const word = pieces.map((piece) => {
      if (piece.startsWith("'")) return piece.slice(1, -1)
      if (piece.startsWith('"')) return expand(piece.slice(1, -1)).replaceAll(/\\(.)/g, '$1')
      return piece.startsWith('\\') ? piece.slice(1) : expand(piece)
    })
    words.push(word.join(''))
  }
  return words
}
