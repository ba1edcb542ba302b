// Flags of the programs that stand in for kube-apiserver and etcd in test suites: all flags of the real programs are
// accepted, and the known ones count.

/** The values of each flag, in order; a flag without a value has `true`. */
export type Flags = ReadonlyMap<string, readonly string[]>

/** Parses `--name=value`, `--name value` and `--name`. Words that are no flags are ignored. */
export function parseFlags(words: readonly string[]): Flags {
  const flags = new Map<string, string[]>()
  for (const [at, word] of words.entries()) {
    if (!word.startsWith('--')) continue
    const equals = word.indexOf('=')
    const name = word.slice(2, equals < 0 ? undefined : equals)
    const next = words[at + 1]
    const value = equals >= 0 ? word.slice(equals + 1) : next === undefined || next.startsWith('-') ? 'true' : next
    flags.set(name, [...(flags.get(name) ?? []), value])
  }
  return flags
}

/** The last value of the flag. */
export function valueOf(flags: Flags, name: string): string | undefined {
  return flags.get(name)?.at(-1)
}

/** The values of a flag that may be repeated or list its values with commas. */
export function listOf(flags: Flags, name: string): readonly string[] {
  return (flags.get(name) ?? []).flatMap((value) => value.split(',')).filter((value) => value !== '')
}

/** The usage text; envtest searches it for flags at the beginnings of lines. */
export function usageOf(program: string, about: string, flags: Readonly<Record<string, string>>): string {
  const lines = Object.entries(flags).map(([name, text]) => `  --${name.padEnd(34)} ${text}`)
  return `${about}\n\nUsage:\n  ${program} [flags]\n\nFlags that count; all others of ${program} are accepted and ignored:\n${lines.join('\n')}`
}
