// Builds the site of the documents: dist/site/VERSION, and the list of versions beside it.
//   node scripts/documents/build-site.ts [--out DIR] [--source-url URL] [--check]
// --source-url is the address of the checkout at a code host, for links to sources. --check only checks the links.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { programVersion } from '#telemetry/index.ts'
import { documentPaths, projectRoot, readDocument } from './documents.ts'
import { readMeasured } from './measured.ts'
import { siteOf, type Page } from './site/pages.ts'
import { pageHtml, type NavigationPart } from './site/template.ts'

const { values } = parseArgs({
  options: { out: { type: 'string' }, 'source-url': { type: 'string' }, check: { type: 'boolean' } },
})
const sourceUrl = values['source-url']
const site = siteOf({
  documents: new Map(documentPaths().map((path) => [path, readDocument(path)])),
  exists: (path) => existsSync(join(projectRoot, path)),
  ...(sourceUrl !== undefined && { sourceUrl }),
})
if (site.faults.length > 0) {
  console.error(site.faults.join('\n'))
  process.exit(1)
}
if (values.check !== true) await write(values.out ?? join(projectRoot, 'dist/site'))

async function write(all: string): Promise<void> {
  const out = join(all, programVersion)
  rmSync(out, { recursive: true, force: true })
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(out, path)), { recursive: true })
    writeFileSync(join(out, path), text)
  }
  const navigation = navigationOf(site.pages)
  for (const page of site.pages) put(page.url, pageHtml(page, { version: programVersion, navigation }))
  put('assets/search.json', JSON.stringify(site.pages.flatMap(sectionsOf)))
  put('assets/measured.json', JSON.stringify(readMeasured()))
  cpSync(join(projectRoot, 'docs/images'), join(out, 'images'), { recursive: true })
  cpSync(join(import.meta.dirname, 'site/site.css'), join(out, 'assets/site.css'))
  await build({
    entryPoints: [join(import.meta.dirname, 'site/client/site.ts')],
    outfile: join(out, 'assets/site.js'),
    ...{ bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022', logLevel: 'warning' },
  })
  const versions = readdirSync(all).filter((name) => statSync(join(all, name)).isDirectory())
  versions.sort((one, other) => other.localeCompare(one, 'en', { numeric: true }))
  writeFileSync(join(all, 'versions.json'), JSON.stringify(versions))
  const newest = versions[0] ?? programVersion
  const refresh = `<meta http-equiv="refresh" content="0;url=${newest}/index.html">`
  writeFileSync(
    join(all, 'index.html'),
    `<!doctype html><meta charset="utf-8">${refresh}<a href="${newest}/index.html">kcp ${newest}</a>\n`,
  )
  console.log(`${out}: ${site.pages.length} pages`)
}

/** The parts of the navigation with their pages. Pages that belong to no part are in a last part, "More". */
function navigationOf(pages: readonly Page[]): NavigationPart[] {
  const parts: readonly [string, RegExp][] = [
    ['Start', /^(README|docs\/README|CHANGELOG)\.md$/],
    ['Tutorials', /^docs\/tutorials\//],
    [
      'How to',
      /^docs\/(how-to\/|gitops|upgrading|kustomize|runbook|disaster|sizing|controllers|exported-apis|multi-cluster)/,
    ],
    ['Concepts', /^docs\/(concepts\/|placement|security|isolation)/],
    ['Coming from', /^docs\/coming-from\//],
    ['Reference', /^docs\/(reference\/|limits|benchmarks)/],
    ['Decisions', /^docs\/design\//],
  ]
  const known = parts.map(([title, pattern]) => ({ title, pages: pages.filter(({ path }) => pattern.test(path)) }))
  const rest = pages.filter((page) => !known.some(({ pages: own }) => own.includes(page)))
  return rest.length === 0 ? known : [...known, { title: 'More', pages: rest }]
}

/** What the search finds: the parts of a page between its headings. */
function sectionsOf({ title, url, text, headings }: Page): object[] {
  const parts = text.split(/^#{1,3} .*$/m)
  const shown = headings.filter(({ level }) => level <= 3)
  return shown.map((heading, index) => ({
    id: index === 0 ? url : `${url}#${heading.anchor}`,
    ...{ title: heading.title, page: title, text: (parts[index + 1] ?? '').replace(/[`*|<>]/g, ' ').slice(0, 4000) },
  }))
}
