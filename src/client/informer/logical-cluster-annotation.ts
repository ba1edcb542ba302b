/** On every object in a list or watch over `/clusters/*`: the name of its logical cluster. */
export const logicalClusterAnnotation = 'kcp.dev/logical-cluster'
