// The command blocks of a document, with what HTML comments before them say about how a test runs them. Pure.
//
//   <!-- setup            commands that readers have run on another page; a test runs them, a reader does not see them
//   ...
//   -->
//   <!-- not run: WHY -->                     the block after it is not run
//   <!-- background until: COMMAND -->        the block after it does not end; the test waits until COMMAND succeeds

/** A piece of a page that a test runs. */
export interface CommandBlock {
  readonly kind: 'setup' | 'commands'
  /** Line of the document at which it begins, from 1. */
  readonly line: number
  readonly text: string
  /** Why it is not run; absent: it is run. */
  readonly notRun?: string
  /** It does not end; the next block may begin when this command succeeds. */
  readonly until?: string
}

/** Languages of fences that contain commands. */
const shells: readonly string[] = ['sh', 'bash', 'shell', 'console']

interface Directives {
  notRun?: string
  until?: string
}

/** The blocks of a document in their order. Throws if a comment for a block has no block behind it. */
export function commandBlocks(document: string): CommandBlock[] {
  const lines = document.split('\n')
  const blocks: CommandBlock[] = []
  let directives: Directives = {}
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const [, indent = '', language] = /^( *)```(\w*)\s*$/.exec(line) ?? []
    if (language !== undefined) {
      const end = endOf(lines, index + 1, (text) => text.trim() === '```')
      const text = lines.slice(index + 1, end).map((one) => (one.startsWith(indent) ? one.slice(indent.length) : one))
      if (shells.includes(language))
        blocks.push({ kind: 'commands', line: index + 1, text: text.join('\n'), ...directives })
      else if (Object.keys(directives).length > 0)
        throw new Error(`line ${index + 1}: a comment stands before a block without commands`)
      directives = {}
      index = end
    } else if (line === '<!-- setup') {
      const end = endOf(lines, index + 1, (text) => text === '-->')
      blocks.push({ kind: 'setup', line: index + 1, text: lines.slice(index + 1, end).join('\n') })
      index = end
    } else {
      directives = { ...directives, ...directiveOf(line) }
    }
  }
  if (Object.keys(directives).length > 0) throw new Error('a comment has no block behind it')
  return blocks
}

function endOf(lines: readonly string[], from: number, isEnd: (line: string) => boolean): number {
  const end = lines.findIndex((line, index) => index >= from && isEnd(line))
  if (end < 0) throw new Error(`line ${from}: the block has no end`)
  return end
}

function directiveOf(line: string): Directives {
  const [, name, value] = /^ *<!-- (not run|background until): (.+) -->$/.exec(line) ?? []
  if (name === undefined || value === undefined) return {}
  return name === 'not run' ? { notRun: value } : { until: value }
}
