//! What every front shares: who may, limits, problems, streams, serving.
