// Bundles the pages of the console into dist/console: index.html, and assets whose names contain a hash of their
// content, each with a copy compressed by brotli.   node scripts/build/console.ts
import { readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild'

const root = resolve(import.meta.dirname, '../..')
const source = join(root, 'console')
const output = join(root, 'dist/console')
const compress = promisify(brotliCompress)

/** The most that a browser loads before the first page appears, in bytes of brotli. */
const maxFirstLoadBytes = 200_000

/** Modules of Node of which functions that the console shares with the program use little: console/shims has them. */
const shimmed = ['node:crypto', 'node:net', 'node:timers/promises']
/** Packages that run in a browser. All others belong to the server, and nothing that the console uses needs them. */
const packages =
  /^(preact|@preact|@codemirror|@lezer|@marijn|@xterm|@noble|style-mod|w3c-keyname|crelt|lru-cache|re2js)(\/|$)/

/**
 * Gives the modules that a browser has not a substitute, or leaves their import out. Code that is shared with the
 * program may import them beside what the console uses.
 */
const browserModules: Plugin = {
  name: 'browser-modules',
  setup(builder) {
    builder.onResolve({ filter: /^[^./#]/ }, ({ path, kind }) => {
      if (kind === 'entry-point' || packages.test(path)) return undefined
      if (!shimmed.includes(path)) return { path, external: true, sideEffects: false }
      const name = path.slice('node:'.length).replace('/', '-')
      return { path: join(source, 'shims', `${name}.ts`), sideEffects: false }
    })
  },
}

/**
 * The operator's functions, which explain placement: a bundle of its own. In one bundle with the pages, esbuild would
 * put all of a file that both use into the first load.
 */
const engine = 'lazy/placement.ts'

/** Lets the pages import the engine, which is built already, by the name of its bundle. */
function engineAt(file: string): Plugin {
  return {
    name: 'engine',
    setup(builder) {
      builder.onResolve({ filter: /^#console\/lazy\/placement\.ts$/ }, () => ({ path: `./${file}`, external: true }))
    },
  }
}

async function bundle(entry: string, { plugins = [], ...options }: BuildOptions = {}): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(source, entry)],
    outdir: join(output, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome120', 'firefox121', 'safari17.2'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.md': 'text' },
    legalComments: 'linked',
    logLevel: 'warning',
    ...options,
    metafile: true,
    plugins: [...plugins, browserModules],
  })
  const missing = Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.filter(({ external, path }) => external === true && !/^(data:|\.\/)/.test(path)).map(({ path }) => path),
  )
  if (missing.length > 0) throw new Error(`a browser has no module ${[...new Set(missing)].join(', ')}`)
  return metafile
}

/** The entry, its styles, and all that it imports without `import()`. */
function firstLoad({ outputs }: Metafile): { script: string; styles: string; files: ReadonlySet<string> } {
  const script = Object.keys(outputs).find((file) => outputs[file]?.entryPoint === 'console/main.tsx') ?? ''
  const styles = outputs[script]?.cssBundle ?? ''
  const files = new Set([script, styles])
  for (const file of files)
    for (const { path, kind } of outputs[file]?.imports ?? []) if (kind === 'import-statement') files.add(path)
  return { script, styles, files }
}

await rm(output, { recursive: true, force: true })
const engineFiles = await bundle(engine, { inject: [join(source, 'shims/buffer.ts')] })
const engineFile = Object.keys(engineFiles.outputs).find((file) => file.endsWith('.js')) ?? ''
const pages = await bundle('main.tsx', { splitting: true, plugins: [engineAt(basename(engineFile))] })
const { script, styles, files } = firstLoad(pages)
const assets = [...Object.keys(engineFiles.outputs), ...Object.keys(pages.outputs)]
let firstLoadBytes = 0
for (const file of assets) {
  const content = await readFile(join(root, file))
  const compressed = await compress(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  await writeFile(join(root, `${file}.br`), compressed)
  if (files.has(file)) firstLoadBytes += compressed.length
}
const html = await readFile(join(source, 'index.html'), 'utf8')
const page = html
  .replace('__STYLES__', `assets/${basename(styles)}`)
  .replace('__SCRIPT__', `assets/${basename(script)}`)
await writeFile(join(output, 'index.html'), page)
const kilobytes = (firstLoadBytes / 1000).toFixed(1)
console.log(`${relative(root, output)}: ${assets.length} assets, ${kilobytes} kB at first load`)
if (firstLoadBytes > maxFirstLoadBytes)
  throw new Error(`the console loads ${kilobytes} kB at first, more than ${maxFirstLoadBytes / 1000} kB`)
