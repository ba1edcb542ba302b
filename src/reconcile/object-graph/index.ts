export * from './object-graph.ts'
export * from './shared-apis.ts'
