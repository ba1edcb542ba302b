// YAML of an object as text. The server reads and writes the YAML itself, so no number is rounded on its way.

/** The text without metadata.managedFields, which the server keeps when an update does not have it. */
export function withoutManagedFields(yaml: string): string {
  const lines = yaml.split('\n')
  const metadata = lines.indexOf('metadata:')
  const begin = lines.findIndex((line, index) => index > metadata && /^ {2}managedFields:/.test(line))
  if (metadata < 0 || begin < 0 || lines.slice(metadata + 1, begin).some((line) => /^\S/.test(line))) return yaml
  const after = lines.findIndex((line, index) => index > begin && /^( {2}[^\s-]|\S)/.test(line))
  return [...lines.slice(0, begin), ...(after < 0 ? [''] : lines.slice(after))].join('\n')
}

export interface YamlPlace {
  /** Keys from the root; a list item is `-`. */
  readonly path: readonly string[]
  /** The key is being written; otherwise its value. */
  readonly at: 'key' | 'value'
}

interface Level {
  readonly column: number
  /** A key, or `-` for an item of a list. */
  readonly part: string
}

/** Where a position is in a block of YAML: by its indentation, as kubectl and the server write it. */
export function placeIn(text: string, position: number): YamlPlace {
  const lines = text.slice(0, position).split('\n')
  const current = lines.pop() ?? ''
  const levels: Level[] = []
  for (const line of lines) if (line.trim() !== '' && !line.trimStart().startsWith('#')) takeLine(levels, line)
  const hasKey = takeLine(levels, current)
  return { path: levels.map(({ part }) => part), at: hasKey ? 'value' : 'key' }
}

/** Takes the list items and the key of a line into the levels. Returns false if the line has no key. */
function takeLine(levels: Level[], line: string): boolean {
  const [, blanks = '', dashes = '', rest = ''] = /^(\s*)((?:- +)*)(.*)$/.exec(line) ?? []
  let column = blanks.length
  for (const dash of dashes.match(/- +/g) ?? []) {
    // A list may be as much indented as its key: only items of the same list end here.
    leave(levels, (level) => level.column > column || (level.column === column && level.part === '-'))
    levels.push({ column, part: '-' })
    column += dash.length
  }
  leave(levels, (level) => level.column >= column)
  const key = /^("[^"]*"|[\w./-]+):(?:\s|$)/.exec(rest)?.[1]
  if (key === undefined) return false
  levels.push({ column, part: key.replaceAll('"', '') })
  return true
}

function leave(levels: Level[], isLeft: (level: Level) => boolean): void {
  for (let last = levels.at(-1); last !== undefined && isLeft(last); last = levels.at(-1)) levels.pop()
}

/** The text with the resourceVersion of another text: an update that knows of the change in between. */
export function withRevisionOf(yaml: string, latest: string): string {
  const line = /^ {2}resourceVersion: .*$/m
  const revision = line.exec(latest)?.[0]
  return revision === undefined ? yaml : yaml.replace(line, () => revision)
}
