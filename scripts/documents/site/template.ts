// The HTML around a page. All scripts and styles are files of the site, so that a strict Content-Security-Policy holds.
import { posix } from 'node:path'
import type { Page } from './pages.ts'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

export interface NavigationPart {
  readonly title: string
  readonly pages: readonly Page[]
}

interface Frame {
  readonly version: string
  readonly navigation: readonly NavigationPart[]
}

/** The whole page. */
export function pageHtml(page: Page, { version, navigation }: Frame): string {
  const up = (url: string): string => posix.relative(posix.dirname(page.url), url)
  const parts = navigation.map(({ title, pages }) => {
    const items = pages.map((each) => {
      const current = each === page ? ' aria-current="page"' : ''
      return `<li><a href="${up(each.url)}"${current}>${escaped(each.title)}</a></li>`
    })
    return `<h2>${escaped(title)}</h2>\n<ul>${items.join('\n')}</ul>`
  })
  const contents = page.headings.filter(({ level }) => level === 2)
  const list = contents.map(({ anchor, title }) => `<li><a href="#${anchor}">${escaped(title)}</a></li>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escaped(page.title)} - kcp ${version}</title>
<link rel="stylesheet" href="${up('assets/site.css')}">
<script type="module" src="${up('assets/site.js')}"></script>
</head>
<body data-root="${up('.') || '.'}">
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="home" href="${up('index.html')}">kcp</a>
<label class="version">Version <select id="versions"><option>${version}</option></select></label>
<search><label for="query">Search</label> <input id="query" type="search" autocomplete="off" placeholder="Press /"><ul id="results" aria-live="polite"></ul></search>
</header>
<div class="columns">
<nav aria-label="Documents">${parts.join('\n')}</nav>
<main id="content">
${page.html}
</main>
<aside aria-label="On this page">${list.length > 1 ? `<ul>${list.join('\n')}</ul>` : ''}</aside>
</div>
</body>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
