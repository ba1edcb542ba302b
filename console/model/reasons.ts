// What each reason means and what to do, from docs/reference/reasons.md.

/** The text below each heading `### REASON` of the page, and the cells of each row of its tables. */
export function reasonTexts(markdown: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const part of markdown.split(/^### /m).slice(1)) {
    const end = part.indexOf('\n')
    const names = part.slice(0, end).split(/[,/]/)
    // The next section of the page begins with a heading of its own.
    const [body = ''] = part.slice(end + 1).split(/^## /m)
    for (const name of names) found.set(name.trim().replaceAll('`', ''), plain(body))
  }
  for (const [, name = '', cells = ''] of markdown.matchAll(/^\| `(\w+)` \|(.*)\|$/gm))
    if (!found.has(name)) found.set(name, plain(cells.replaceAll(' | ', '\n')))
  return found
}

/** Markdown as text: links as their words, lines joined. */
function plain(markdown: string): string {
  return markdown
    .trim()
    .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replace(/\n(?!- )\s*/g, ' ')
}
