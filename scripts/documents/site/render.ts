// A document as HTML, with its headings and links. Pure.
import MarkdownIt, { type Token } from 'markdown-it'

export interface Heading {
  readonly level: number
  readonly title: string
  readonly anchor: string
}
export interface Link {
  /** As it is written: a path relative to the document, `#ANCHOR`, or a URL. */
  readonly target: string
  /** Line of the document, from 1. */
  readonly line: number
}
export interface Rendered {
  readonly html: string
  readonly headings: readonly Heading[]
  readonly links: readonly Link[]
}

/** Renders a document. `hrefOf` gives the link in the site; undefined: the text without a link. */
export function render(document: string, hrefOf: (target: string) => string | undefined): Rendered {
  // HTML of the documents themselves: comments, and the place of the calculator.
  const markdown = new MarkdownIt({ html: true, linkify: false })
  const headings: Heading[] = []
  const links: Link[] = []
  const tokens = markdown.parse(document, {})
  const used = new Map<string, number>()
  tokens.forEach((token, index) => {
    const inline = tokens[index + 1]
    if (token.type === 'heading_open' && inline !== undefined) {
      const anchor = unique(anchorOf(inline.content), used)
      token.attrSet('id', anchor)
      headings.push({ level: Number(token.tag.slice(1)), title: plain(inline.content), anchor })
    }
    const line = (token.map?.[0] ?? 0) + 1
    const drops: boolean[] = []
    for (const child of token.children ?? []) {
      if (child.type === 'image') replace(child, 'src', { line, links, hrefOf })
      if (child.type === 'link_open') {
        const isKept = replace(child, 'href', { line, links, hrefOf })
        drops.push(!isKept)
        if (!isKept) child.tag = 'span'
      } else if (child.type === 'link_close' && drops.pop() === true) child.tag = 'span'
    }
  })
  return { html: markdown.renderer.render(tokens, markdown.options, {}), headings, links }
}

function replace(
  token: Token,
  name: 'href' | 'src',
  { line, links, hrefOf }: { line: number; links: Link[]; hrefOf: (target: string) => string | undefined },
): boolean {
  const target = String(token.attrGet(name) ?? '')
  links.push({ target, line })
  const href = hrefOf(target)
  if (href === undefined) token.attrs = (token.attrs ?? []).filter(([each]) => each !== name)
  else token.attrSet(name, href)
  return href !== undefined
}

/** The anchor of a heading, as code hosts make it of the text. */
export function anchorOf(title: string): string {
  return plain(title)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

function unique(anchor: string, used: Map<string, number>): string {
  const count = used.get(anchor) ?? 0
  used.set(anchor, count + 1)
  return count === 0 ? anchor : `${anchor}-${count}`
}

/** The text without marks of code, emphasis and links. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')
}
