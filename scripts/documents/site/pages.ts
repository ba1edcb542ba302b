// The pages of the site: all documents, their place, the links between them, and what is wrong with those. Pure but for
// the files it is told about.
import { posix } from 'node:path'
import { render, type Rendered } from './render.ts'

export interface Page extends Rendered {
  /** Path of the document, relative to the project. */
  readonly path: string
  /** Path in the site. */
  readonly url: string
  readonly title: string
  readonly text: string
}

export interface Site {
  readonly pages: readonly Page[]
  /** Each broken link and each page that the index does not name, as a line. */
  readonly faults: readonly string[]
}

interface SiteOptions {
  /** The documents by path. */
  readonly documents: ReadonlyMap<string, string>
  /** Whether a file or folder of the project exists. */
  readonly exists: (path: string) => boolean
  /** URL of the folder of the project at a code host, for links to sources. Absent: no such links. */
  readonly sourceUrl?: string
}

const index = 'docs/README.md'

/** The page of a document in the site: `docs/concepts/moves.md` is `concepts/moves.html`. */
export function urlOf(path: string): string {
  if (path === 'README.md') return 'start.html'
  if (path === index) return 'index.html'
  return path.replace(/^docs\//, '').replace(/\.md$/, '.html')
}

/** Renders all documents and checks their links. */
export function siteOf({ documents, exists, sourceUrl }: SiteOptions): Site {
  const pages = [...documents].map(([path, text]): Page => {
    const rendered = render(text, (target) => hrefOf(path, target, { documents, sourceUrl }))
    const title = rendered.headings.find(({ level }) => level === 1)?.title ?? path
    return { ...rendered, path, url: urlOf(path), title, text }
  })
  const byPath = new Map(pages.map((page) => [page.path, page]))
  const named = new Set(byPath.get(index)?.links.map(({ target }) => targetOf(index, target).path))
  const unnamed = pages.filter(({ path }) => path !== index && !named.has(path) && !isInFolder(path, named))
  return {
    pages,
    faults: [
      ...pages.flatMap((page) => page.links.flatMap((link) => faultOf(page, link, { byPath, exists }))),
      ...unnamed.map(({ path }) => `${path} is not in ${index}`),
    ],
  }
}

/** A folder in the index stands for its documents, such as that of decisions. */
function isInFolder(path: string, named: ReadonlySet<string>): boolean {
  return named.has(posix.dirname(path))
}

function targetOf(from: string, target: string): { readonly path: string; readonly anchor: string } {
  const [path = '', anchor = ''] = target.split('#')
  return {
    path: path === '' ? from : posix.normalize(posix.join(posix.dirname(from), path)).replace(/\/$/, ''),
    anchor,
  }
}

function isElsewhere(target: string): boolean {
  return /^[a-z]+:/.test(target)
}

function hrefOf(
  from: string,
  target: string,
  { documents, sourceUrl }: { documents: ReadonlyMap<string, string>; sourceUrl: string | undefined },
): string | undefined {
  if (isElsewhere(target) || target.startsWith('#')) return target
  const { path, anchor } = targetOf(from, target)
  const suffix = anchor === '' ? '' : `#${anchor}`
  const base = posix.dirname(urlOf(from))
  if (documents.has(path)) return `${posix.relative(base, urlOf(path))}${suffix}`
  if (path.startsWith('docs/images/')) return posix.relative(base, path.slice('docs/'.length))
  return sourceUrl === undefined ? undefined : `${sourceUrl.replace(/\/$/, '')}/${path}${suffix}`
}

function faultOf(
  { path: from }: Page,
  { target, line }: Rendered['links'][number],
  { byPath, exists }: { byPath: ReadonlyMap<string, Page>; exists: (path: string) => boolean },
): string[] {
  if (isElsewhere(target)) return []
  const { path, anchor } = targetOf(from, target)
  const page = byPath.get(path)
  if (page === undefined) return exists(path) ? [] : [`${from}:${line}: ${target} does not exist`]
  if (anchor === '' || page.headings.some((heading) => heading.anchor === anchor)) return []
  // A place that the document names in HTML.
  return page.text.includes(`id="${anchor}"`) ? [] : [`${from}:${line}: ${path} has no heading #${anchor}`]
}
