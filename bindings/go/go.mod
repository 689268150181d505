module dtrain.org/dtrain

go 1.19
