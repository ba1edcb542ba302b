export * from './object-graph.ts'
