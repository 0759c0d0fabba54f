-- The site's kinds of GPUs, made by: slipway-gpu lua
return {
    {name = "standin8g", shards = 4, least = 1},
}
