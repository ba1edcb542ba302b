// The reference of all commands, from the program itself.
import type { Argument, Option } from 'commander'
import { commandsWithPaths, examplesOf, type CommandAt } from '#cli/examples.ts'
import { createProgram } from '#cli/program.ts'

/** The page. */
export function commandReference(): string {
  const all = commandsWithPaths(createProgram()).filter(({ command }) => command.commands.length === 0)
  return `# Commands

Made from the program by \`make reference\`; \`kcp COMMAND --help\` says the same. \`kubectl kcp\` is the same program.

- **Exit codes**: 0 success, 1 failed, 2 wrong usage. \`kcp connect\` ends with the code of its command.
- **Output**: results on standard output; progress, warnings and errors on standard error.
- **The installation** is that of \`--root-dir\` or \`--host-kubeconfig\`, else that of the current context of \`kcp use\`, else that of
  \`KUBECONFIG\`.

| command | what it does |
|---|---|
${all.map(({ path, command }) => `| [\`kcp ${path}\`](#${anchorOf(path)}) | ${cell(command.description())} |`).join('\n')}

${all.map(sectionOf).join('\n\n')}
`
}

function anchorOf(path: string): string {
  return `kcp-${path.replaceAll(' ', '-')}`
}

function sectionOf({ path, command }: CommandAt): string {
  const examples = examplesOf(path)
  const words = command.registeredArguments.map(argumentText)
  const options = command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help')
  return [
    `## kcp ${path}`,
    '',
    sentence(command.description()),
    ...(examples.length === 0 ? [] : ['', '```text', ...examples, '```']),
    ...(words.length === 0 ? [] : ['', '| argument | |', '|---|---|', ...words]),
    ...(options.length === 0 ? [] : ['', '| flag | |', '|---|---|', ...options.map(optionText)]),
  ].join('\n')
}

function argumentText(argument: Argument): string {
  const { description, argChoices, required, variadic } = argument
  const defaultValue: unknown = argument.defaultValue
  const label = `${argument.name()}${variadic ? '...' : ''}`
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`
  const usual = typeof defaultValue === 'string' ? ` (default: ${defaultValue})` : ''
  return `| \`${required ? label : `[${label}]`}\` | ${cell(`${description}${choices}${usual}`)} |`
}

function optionText(option: Option): string {
  const { flags, description, argChoices } = option
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`
  return `| \`${flags}\` | ${cell(`${description}${choices}${defaultText(option.defaultValueDescription, option.defaultValue as unknown)}`)} |`
}

/** The default of a flag, except one that depends on the machine or says nothing. */
function defaultText(described: string | undefined, value: unknown): string {
  if (described !== undefined) return ` (default: ${described})`
  const isPlain = (typeof value === 'string' && value !== '') || typeof value === 'number'
  return isPlain ? ` (default: ${String(value)})` : ''
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;')
}
