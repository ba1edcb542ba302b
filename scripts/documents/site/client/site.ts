// The script of every page: search, the list of versions, and the calculator of the sizing page. Pages are complete
// without it.
import MiniSearch from 'minisearch'
import { sizeOf, type Measured, type Wanted } from '../../sizing.ts'

interface Section {
  readonly id: string
  readonly title: string
  readonly page: string
  readonly text: string
}

const root = document.body.dataset['root'] ?? '.'
const maxResults = 12

async function json<T>(path: string): Promise<T> {
  const response = await fetch(`${root}/${path}`)
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return (await response.json()) as T
}

function searchBox(input: HTMLInputElement, results: HTMLUListElement): void {
  let loading: Promise<MiniSearch<Section>> | undefined
  const load = async (): Promise<MiniSearch<Section>> => {
    const search = new MiniSearch<Section>({
      fields: ['title', 'page', 'text'],
      storeFields: ['title', 'page'],
      searchOptions: { boost: { title: 3, page: 2 }, prefix: true, fuzzy: 0.15 },
    })
    search.addAll(await json<Section[]>('assets/search.json'))
    return search
  }
  const show = async (): Promise<void> => {
    const search = await (loading ??= load())
    const found = input.value.trim() === '' ? [] : search.search(input.value).slice(0, maxResults)
    results.replaceChildren(
      ...found.map(({ id, title, page }) => resultItem(`${root}/${id as string}`, title as string, page as string)),
    )
  }
  input.addEventListener('focus', () => void (loading ??= load()))
  input.addEventListener('input', () => void show())
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault()
      input.focus()
    }
    if (event.key === 'Escape') results.replaceChildren()
  })
}

function resultItem(href: string, title: string, page: string): HTMLLIElement {
  const link = document.createElement('a')
  link.href = href
  link.textContent = title === page ? title : `${page}: ${title}`
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** The other versions, from the file that lies beside the folders of all versions. */
async function versionList(select: HTMLSelectElement): Promise<void> {
  const here = select.value
  const versions = await json<string[]>('../versions.json')
  select.replaceChildren(...versions.map((version) => new Option(version, version, version === here, version === here)))
  select.addEventListener('change', () => location.assign(`${root}/../${select.value}/index.html`))
}

const fields: readonly (readonly [keyof Wanted, string, number])[] = [
  ['clusters', 'Logical clusters', 500],
  ['activeClusters', 'of these in memory', 100],
  ['objectsPerCluster', 'Objects of 1 KiB in each', 1000],
  ['watches', 'Open watches', 5000],
  ['readsPerSecond', 'Reads per second', 300],
  ['writesPerSecond', 'Writes per second', 50],
]

async function calculator(place: HTMLElement): Promise<void> {
  const measured = await json<Measured>('assets/measured.json')
  const inputs = fields.map(([, , value]) => {
    const input = document.createElement('input')
    Object.assign(input, { type: 'number', min: '0', value: String(value) })
    return input
  })
  const output = document.createElement('output')
  const update = (): void => {
    const wanted = Object.fromEntries(
      fields.map(([name], index) => [name, Math.max(0, Number(inputs[index]?.value ?? 0))]),
    )
    const { memoryMiB, cores, storageMiB } = sizeOf(wanted as unknown as Wanted, measured)
    output.textContent = `${memoryMiB} MiB of memory, ${cores} cores, ${storageMiB} MiB of storage`
  }
  const labels = inputs.map((input, index) => {
    const label = document.createElement('label')
    label.append(fields[index]?.[1] ?? '', input)
    input.addEventListener('input', update)
    return label
  })
  const form = document.createElement('div')
  form.className = 'calculator'
  form.append(...labels, output)
  place.replaceChildren(form)
  update()
}

const [input, results, versions, place] = ['query', 'results', 'versions', 'sizing-calculator'].map((id) =>
  document.getElementById(id),
)
if (input instanceof HTMLInputElement && results instanceof HTMLUListElement) searchBox(input, results)
if (versions instanceof HTMLSelectElement) void versionList(versions).catch(() => undefined)
if (place instanceof HTMLElement) void calculator(place)
