// `kcp completion SHELL`: the script with which a shell completes commands, flags and their values. The script asks
// `kcp __complete WORDS...`, whose output has the form that programs made with cobra print, so that kubectl can
// complete `kubectl kcp` with it, too.
import type { Argument, Command, Option } from 'commander'
import { valueOf, type Candidate, type Value } from './values.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

export interface Completion {
  readonly candidates: readonly Candidate[]
  /** Whether the shell may offer files: true for the value of a flag without fixed values. */
  readonly takesFiles: boolean
  /** What the word names in the installation, which may know more candidates. */
  readonly value?: Value
}

/** Directives of cobra: files are offered, or nothing besides the candidates. */
const directives = { files: 0, noFiles: 4 }

/** The words that may follow `words`, of which the last is being typed and may be empty. */
export function completionsOf(program: Command, words: readonly string[]): Completion {
  const typed = words.at(-1) ?? ''
  const command = commandAt(program, words.slice(0, -1))
  const flag = optionOf(command, words.at(-2) ?? '')
  if (flag !== undefined && (flag.required || flag.optional)) return valuesOf(flag, typed)
  if (typed.startsWith('-')) return { candidates: startingWith(typed, flagsOf(command)), takesFiles: false }
  const argument = argumentAt(command, words.slice(0, -1))
  const value = argument === undefined ? undefined : valueOf(argument)
  const all = [...subcommandsOf(command), ...choicesOf(argument)]
  return { candidates: startingWith(typed, all), takesFiles: false, ...(value !== undefined && { value }) }
}

function startingWith(typed: string, all: readonly Candidate[]): Candidate[] {
  return all.filter(({ word }) => word.startsWith(typed))
}

/** The argument that is being typed; undefined behind the last one. */
function argumentAt(command: Command, words: readonly string[]): Argument | undefined {
  const own = words.slice(words.lastIndexOf(command.name()) + 1)
  const given = own.filter((word, index) => {
    const before = optionOf(command, own[index - 1] ?? '')
    return !word.startsWith('-') && !(before?.required === true || before?.optional === true)
  })
  const { registeredArguments: known } = command
  const last = known.at(-1)
  return known[given.length] ?? (last?.variadic === true ? last : undefined)
}

function commandAt(program: Command, words: readonly string[]): Command {
  let command = program
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command
  return command
}

function optionOf(command: Command, word: string): Option | undefined {
  return command.options.find(({ long, short }) => word !== '' && (word === long || word === short))
}

function valuesOf(option: Option, typed: string): Completion {
  const { argChoices, description } = option
  const value = valueOf(option)
  if (value !== undefined) return { candidates: [], takesFiles: false, value }
  if (argChoices === undefined) return { candidates: [], takesFiles: true }
  const candidates = argChoices.map((word) => ({ word, description }))
  return { candidates: startingWith(typed, candidates), takesFiles: false }
}

function flagsOf(command: Command): Candidate[] {
  const flags = command.options.filter(({ hidden }) => !hidden)
  return [
    ...flags.map(({ long, short, description }) => ({ word: long ?? short ?? '', description })),
    { word: '--help', description: 'display help for command' },
  ]
}

function subcommandsOf(command: Command): Candidate[] {
  const shown = command.createHelp().visibleCommands(command)
  return shown.map((each) => ({ word: each.name(), description: each.summary() || each.description() }))
}

function choicesOf(argument: Argument | undefined): Candidate[] {
  return (argument?.argChoices ?? []).map((word) => ({ word, description: argument?.description ?? '' }))
}

/** Runs `kcp __complete`: a line for each candidate, and the directive. */
export async function printCompletions(program: Command, words: readonly string[]): Promise<void> {
  const { candidates, takesFiles, value } = completionsOf(program, words)
  const named = value === undefined ? [] : await namedValues(value, words)
  const lines = [...candidates, ...named].map(({ word, description }) => `${word}\t${description.split('\n')[0] ?? ''}`)
  console.log([...lines, `:${takesFiles ? directives.files : directives.noFiles}`].join('\n'))
}

/** The candidates that the installation knows; none if none is found, or if it does not answer in time. */
async function namedValues(value: Value, words: readonly string[]): Promise<readonly Candidate[]> {
  const { completedValues } = await import('./completed-values.ts')
  return completedValues(value, words).catch(() => [])
}

/** Runs `kcp completion`. */
export async function run(shell: Shell): Promise<void> {
  process.stdout.write(scripts[shell])
}

const scripts: Readonly<Record<Shell, string>> = {
  bash: `# For bash:   source <(kcp completion bash)
_kcp() {
    local out
    out=$(kcp __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
    local directive=\${out##*:}
    local IFS=$'\\n'
    COMPREPLY=($(printf '%s\\n' "$out" | sed '$d' | cut -f1))
    if [ "$directive" = 0 ]; then compopt -o default; fi
}
complete -F _kcp kcp
`,
  zsh: `#compdef kcp
# For zsh:   source <(kcp completion zsh)
_kcp() {
    local out directive
    local -a lines words_with_text
    out=$(kcp __complete "\${words[@]:1:$((CURRENT - 1))}" 2>/dev/null) || return
    lines=("\${(@f)out}")
    directive=\${lines[-1]}
    words_with_text=("\${(@)\${lines[1,-2]}//$'\\t'/:}")
    if (( \${#words_with_text} )); then _describe 'kcp' words_with_text; fi
    if [[ $directive == ':0' ]]; then _files; fi
}
compdef _kcp kcp
`,
  fish: `# For fish:   kcp completion fish | source
function __kcp_complete
    set -l words (commandline -opc) (commandline -ct)
    kcp __complete $words[2..-1] 2>/dev/null | string match -v -r '^:[0-9]+$'
end
complete -c kcp -f -a '(__kcp_complete)'
`,
}
