// Bundles the program into dist/src: each entry and each module that is imported late becomes one file, at the path
// that its source has below src. When a program starts, loading thousands of small modules takes longer than running
// them.
//   node scripts/build/bundle.ts
import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { lineMappings } from './line-mappings.ts'

const root = resolve(import.meta.dirname, '../..')
const source = join(root, 'src')
const output = join(root, 'dist/src')

/**
 * The files below src from which the program, its threads, its test programs and the libraries for other projects are
 * built. The modules that they import late, with `import()`, are added.
 */
const entries = [
  'cli/main.ts',
  'cli/test-programs/main.ts',
  'mover/files/hash-thread.ts',
  'store/sqlite/worker.ts',
  'virtualapi/server/offload/worker.ts',
  'testing/index.ts',
  'libraries/cel/index.ts',
  'libraries/client/index.ts',
  'libraries/managed-fields/index.ts',
  'libraries/watch-across/index.ts',
]

const compiledName = (file: string): string => file.replaceAll('\\', '/').replace(/\.ts$/, '.js')

/**
 * Gives `import.meta.url` the value that it has without a bundle: the place of the compiled source below dist/src.
 * Assets and the files of threads are found relative to it.
 */
const sourceUrls: Plugin = {
  name: 'source-urls',
  setup(builder) {
    const entry = (builder.initialOptions.entryPoints as string[])[0] ?? ''
    builder.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const url = `new URL(${JSON.stringify(compiledName(relative(dirname(entry), path)))}, import.meta.url).href`
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' }
    })
  },
}

/** Leaves our own files that are imported late out of the bundle; each becomes an entry. */
function lateImports(found: Set<string>): Plugin {
  return {
    name: 'late-imports',
    setup(builder) {
      const entry = (builder.initialOptions.entryPoints as string[])[0] ?? ''
      builder.onResolve({ filter: /^[.#]/ }, ({ kind, path, resolveDir }) => {
        if (kind !== 'dynamic-import') return undefined
        const file = path.startsWith('#') ? join(source, path.slice(1)) : join(resolveDir, path)
        found.add(relative(source, file))
        return { path: `./${compiledName(relative(dirname(entry), file))}`, external: true }
      })
    },
  }
}

async function bundle(entry: string): Promise<ReadonlySet<string>> {
  const late = new Set<string>()
  const outfile = join(output, compiledName(entry))
  await build({
    entryPoints: [join(source, entry)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Node 24 supports `using`, but esbuild's table of targets does not say so.
    supported: { using: true },
    sourcemap: true,
    sourcesContent: false,
    packages: 'external',
    plugins: [sourceUrls, lateImports(late)],
    logLevel: 'warning',
  })
  const map = JSON.parse(await readFile(`${outfile}.map`, 'utf8')) as { mappings: string; names: string[] }
  await writeFile(`${outfile}.map`, JSON.stringify({ ...map, mappings: lineMappings(map.mappings), names: [] }))
  return late
}

// What an earlier build wrote would be put into the image.
await rm(output, { recursive: true, force: true })
const known = new Set(entries)
for (const entry of known) for (const late of await bundle(entry)) known.add(late)
console.log(`dist/src: ${known.size} bundles`)
