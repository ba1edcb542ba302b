// Loads the library @dot-i/k8s-operator without dependencies that we never use. It requires all of client-node and an
// HTTP client, for its own watch and writes, which ResilientOperator replaces. Loading both takes 87 MB and 0.4 s of
// every start (Node 24). For this library alone, each is replaced by a module that loads it when one of its names is
// used.
import type Library from '@dot-i/k8s-operator'
import { createRequire, registerHooks } from 'node:module'

/** The names that the library imports from each module. */
const lazy: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['KubeConfig', 'CoreV1Api', 'ApiextensionsV1Api', 'Watch', 'loadYaml'],
  gaxios: ['instance'],
}

/**
 * The source of the replacement: getters that load the real module. It is resolved from the library's package.json,
 * because for the library's own file Node has cached the replacement.
 */
function lazySource(module: string, names: readonly string[]): string {
  const library = createRequire(import.meta.url).resolve('@dot-i/k8s-operator/package.json')
  return `'use strict'
const load = require('node:module').createRequire(${JSON.stringify(library)})
for (const name of ${JSON.stringify(names)}) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => load(${JSON.stringify(module)})[name] })
}`
}

const lazyUrlOf = (module: string): string =>
  new URL(`./lazy-${module.replaceAll(/[^a-z]/g, '-')}.cjs`, import.meta.url).href

function loadLibrary(): typeof Library {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const asksLibrary = context.parentURL?.includes('/@dot-i/k8s-operator/') ?? false
      if (!(specifier in lazy) || !asksLibrary) return next(specifier, context)
      return { url: lazyUrlOf(specifier), format: 'commonjs', shortCircuit: true }
    },
    load(url, context, next) {
      const found = Object.entries(lazy).find(([module]) => lazyUrlOf(module) === url)
      if (found === undefined) return next(url, context)
      return { format: 'commonjs', source: lazySource(...found), shortCircuit: true }
    },
  })
  try {
    return createRequire(import.meta.url)('@dot-i/k8s-operator') as typeof Library
  } finally {
    hooks.deregister()
  }
}

/** The library's exports. */
export const operatorLibrary = loadLibrary()
