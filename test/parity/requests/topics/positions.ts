// All pairs of parameters that set the start of lists and watches.
import { get, patch, post, watch, type Row, type Topic } from '#test/parity/requests/row.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const selector = 'labelSelector=p'
const future = '1999999999'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'

const make = (name: string): Row => post(maps, { metadata: { name, labels: { p: name } } }, { what: name, save: name })

/** Every combination of one item of each list, joined as a query; empty items are omitted. */
function combinations(lists: readonly (readonly string[])[]): string[] {
  return lists
    .reduce<string[][]>((all, items) => all.flatMap((one) => items.map((item) => [...one, item])), [[]])
    .map((parts) => parts.filter((part) => part !== '').join('&'))
}

const revisions = ['', 'resourceVersion=0', 'resourceVersion=<<b.metadata.resourceVersion>>']
const matches = ['', 'resourceVersionMatch=Exact', 'resourceVersionMatch=NotOlderThan']
const listQueries = combinations([
  ['limit=2', 'limit=2&continue=<<page.metadata.continue>>', 'limit=2&continue=garbage', 'continue=garbage'],
  [...revisions, `resourceVersion=${future}`],
  matches,
])
const watchQueries = combinations([
  ['', 'sendInitialEvents=true', 'sendInitialEvents=false'],
  [...revisions, `resourceVersion=${future}`],
  [...matches, 'resourceVersionMatch=Nonsense'],
  ['', 'allowWatchBookmarks=true'],
])

export const positions: Topic = {
  name: 'positions',
  rows: [
    ...['a', 'b', 'c', 'd', 'e'].map(make),
    get(`${maps}?${selector}&limit=2`, { save: 'page' }),
    patch('merge', `${maps}/d`, { data: { changed: 'yes' } }),
    ...listQueries.map((query) => get(`${maps}?${selector}&${query}`, { background: query.includes(future) })),
    ...watchQueries.map((query) =>
      watch(`${maps}?watch=true&timeoutSeconds=1&${selector}${query === '' ? '' : `&${query}`}`, 50),
    ),
    // The start is the same in every media type.
    ...[table, partial].flatMap((accept) =>
      combinations([
        ['', 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'],
        revisions,
        ['', 'allowWatchBookmarks=true'],
      ]).map((query) => watch(`${maps}?watch=true&timeoutSeconds=1&${selector}&${query}`, 50, { accept })),
    ),
    ...['0', '1', '-1', '1.5', '', 'abc', '99999999999999999999'].map((seconds) =>
      // A long watch is closed after its first events.
      watch(`${maps}?watch=true&${selector}&timeoutSeconds=${seconds}`, 5, { what: `${seconds} seconds` }),
    ),
  ],
}
